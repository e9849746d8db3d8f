"""A context of its own for every arm: covariances that trials or rounds share."""

import numpy as np
import pytest

from unfog.features import Context
from unfog.features.own import own

ARMS, SIZE, TRIALS, ROUNDS = 3, 2, 4, 5


@pytest.mark.parametrize("batch", [(), (ROUNDS,), (1, ROUNDS), (TRIALS, 1), (TRIALS, ROUNDS)], ids=str)
def test_an_arms_block_whoever_shares_the_covariance(batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(4)
    root = rng.standard_normal((*batch, ARMS * SIZE, ARMS * SIZE))
    cov, arm = root @ root.mT, rng.integers(0, ARMS, (TRIALS, ROUNDS))
    mean = rng.standard_normal((TRIALS, ROUNDS, ARMS * SIZE))
    found = own(np.zeros((ARMS, ARMS * SIZE))).design(Context(mean, cov)).covariance(arm)
    full = np.broadcast_to(cov, (TRIALS, ROUNDS, *cov.shape[-2:]))
    for i, t in np.ndindex(TRIALS, ROUNDS):
        block = slice(SIZE * arm[i, t], SIZE * (arm[i, t] + 1))
        np.testing.assert_allclose(found[i, t], full[i, t, block, block])
