"""The prior of theta for a feature map, from numbers, lists or matrices."""

import numpy as np

from unfog import inputs
from unfog.features.contract import FeatureMap
from unfog.features.per_arm import PerArm
from unfog.inputs import Numbers
from unfog.maths.arrays import Array


def prior(features: FeatureMap, mean: Numbers, cov: Numbers) -> tuple[Array, Array]:
    """Mean (m,) and covariance; where arms have features of their own, that of one stands for all, in blocks.

    The covariance is (m, m), or (K, k, k) in blocks.
    """
    if isinstance(features, PerArm) and in_blocks(features, cov):
        each = inputs.covariance("prior_cov", cov, features.block)
        covs = np.tile(each, (features.arms, 1, 1))
    else:
        covs = inputs.covariance("prior_cov", cov, features.size)
    if isinstance(features, PerArm) and _fits(mean, features.block):
        return np.tile(inputs.vector("prior_mean", mean, features.block), features.arms), covs
    return inputs.vector("prior_mean", mean, features.size), covs


def numbers(features: FeatureMap, cov: Numbers) -> int:
    """How many numbers the covariance has."""
    if isinstance(features, PerArm) and in_blocks(features, cov):
        return features.arms * features.block**2
    return features.size**2


def in_blocks(features: FeatureMap, cov: Numbers) -> bool:
    """Whether a covariance is that of one arm, and so stands for independent blocks."""
    return isinstance(features, PerArm) and _fits(cov, features.block)


def _fits(value: Numbers, size: int) -> bool:
    """Whether a number, a list or a matrix is one of this size; what is ragged is not."""
    try:
        return np.shape(value) in ((), (size,), (size, size))
    except ValueError:
        return False
