"""Streams of random numbers: one for each seed, trial and purpose, whatever is read beside them."""

import numpy as np

from unfog.maths.random import PURPOSES, RoundDraws, generator


def test_draws_depend_on_seed_trial_and_purpose_alone() -> None:
    draws = RoundDraws(5, [0, 3, 8], "agent", 4)
    blocks = np.concatenate([draws.next(10), draws.next(3)], 1)
    for row, trial in zip(blocks, (0, 3, 8), strict=True):
        assert np.array_equal(row, generator(5, trial, "agent").standard_normal((13, 4)))
    keys = [(seed, trial, purpose) for seed in (0, 1) for trial in (0, 1) for purpose in PURPOSES]
    firsts = [generator(*key).standard_normal() for key in keys]
    assert len(set(firsts)) == len(keys)
