"""Experiments: from a spec to a run folder with its table and figure; figures of evaluations, too."""
