"""One map for a batch of contexts: actions without batch axes against a loop over single contexts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import unfog
from tests.problems import law_mean, law_variance, spd
from unfog.features import Context
from unfog.features.per_arm import PerArm
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Gaussian

N, K, D = 6, 4, 3


def waves(action: Array, context: Array) -> Array:
    return np.sin(action * context) + action


MAPS: dict[str, Callable[[np.random.Generator], Any]] = {
    "quadratic": lambda rng: unfog.features.quadratic(rng.normal(0.5, 1, (K, D))),
    "product": lambda rng: unfog.features.product(rng.normal(0.5, 1, (K, D))),
    "matrix": lambda rng: unfog.features.matrix(rng.normal(0.5, 1, (K, 5, D))),
    "per_arm": lambda rng: unfog.features.per_arm(rng.normal(size=(K, D))),
    "slopes alone": lambda _: PerArm(K, D, intercept=False),
    "quadrature": lambda rng: unfog.features.quadrature(waves, D)(rng.normal(0.5, 1, (K, D))),
}


def everything(design: Any, belief: Gaussian, arm: Any) -> dict[str, Array]:
    """All that a design can be asked."""
    law = design.laws(belief.mean).of(arm)
    return {
        "row": design.row(arm),
        "scores": design.scores(belief.mean),
        "variances": design.variances(belief),
        "covariance": design.covariance(arm),
        "context_variance": design.context_variance(belief, arm),
        "context_slope": design.context_slope(belief.mean, arm),
        "law's mean": law_mean(law),
        "law's variance": law_variance(law),
        "law's chance": law.expected_sigmoid(),
    }


@pytest.mark.parametrize("name", MAPS)
def test_a_batch_of_contexts_is_its_members(name: str, rng: np.random.Generator) -> None:
    for shared in [True, False]:
        check_a_batch_of_contexts_is_its_members(name, shared, rng)


def check_a_batch_of_contexts_is_its_members(name: str, shared: bool, rng: np.random.Generator) -> None:
    features = MAPS[name](rng)
    m, means = features.size, rng.normal(1.0, 1.0, (N, D))
    covs = np.stack([spd(rng, D)] * N if shared else [spd(rng, D) for _ in range(N)])
    belief = Gaussian(rng.normal(0.3, 1, (N, m)), rng.normal(size=(N, m, m)))
    arms = np.arange(N) % K
    design = features.design(Context(means, covs[0] if shared else covs))
    whole, known = everything(design, belief, arms), everything(features.at(means), belief, arms)
    for i in range(N):
        own = Gaussian(belief.mean[i], belief.root[i])
        one = everything(features.design(Context(means[i], covs[i])), own, arms[i])
        sure = everything(features.at(means[i]), own, arms[i])
        for what, value in one.items():
            np.testing.assert_allclose(whole[what][i], value, rtol=1e-10, atol=1e-11, err_msg=what)
            np.testing.assert_allclose(known[what][i], sure[what], rtol=1e-10, atol=1e-11, err_msg=what)
