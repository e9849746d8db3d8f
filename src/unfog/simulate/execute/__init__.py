"""Executors: where batches of trials are played."""
