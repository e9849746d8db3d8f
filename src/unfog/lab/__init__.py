"""Experiments: a spec in, a run folder, a table and a figure out."""
