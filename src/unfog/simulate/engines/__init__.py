"""Engines: who plays the rounds of a batch of trials."""
