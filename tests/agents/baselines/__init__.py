"""Baselines, each against a plain loop over rounds and trials written from its formulas."""
