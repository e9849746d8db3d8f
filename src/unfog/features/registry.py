"""Feature maps by the names that specs and live problems use, and the prior of theta for a map.

A name is that of a map that is built in, or `module:name` of a builder that can be imported. A prior is given
as numbers, lists or matrices.
"""

from collections.abc import Callable

import numpy as np

from unfog import validation
from unfog.features.base import Context, FeatureMap, MapBuilder
from unfog.features.linear import matrix, own, product
from unfog.features.per_arm import PerArm, per_arm, slopes
from unfog.features.quadratic import quadratic
from unfog.maths.arrays import Array
from unfog.validation import REFERENCE, InputError, Numbers, display, import_object

BUILT_IN: dict[str, MapBuilder] = {
    "quadratic": quadratic,
    "product": product,
    "per_arm": per_arm,
    "matrix": matrix,
    "own": own,
    "slopes": slopes,
}
ALLOWED = "a map of K actions (..., K, p) and contexts (..., d) to m features (..., K, m)"
IMPORTED = "module:name of a function from actions to a map"


def builder(features: str | MapBuilder) -> MapBuilder:
    """The builder of this name, or the one given."""
    if callable(features):
        return features
    if isinstance(features, str) and features == "quadrature":
        allowed = f"unfog.features.quadrature(phi, dim) in Python, or {IMPORTED} made so"
        raise InputError("features", "'quadrature' alone does not say which phi", allowed)
    if isinstance(features, str) and REFERENCE.fullmatch(features):
        build = import_object("features", features, IMPORTED)
        if not callable(build):
            raise InputError("features", f"{features!r} is {build!r}", IMPORTED)
        return build
    if not isinstance(features, str) or features not in BUILT_IN:
        raise InputError("features", display(features), f"{', '.join(BUILT_IN)}, or {IMPORTED}")
    return BUILT_IN[features]


def check_map(make: Callable[[], FeatureMap], number: int, dim: int) -> None:
    """Check the shapes of what a custom map returns, for so many actions and contexts of this dimension."""
    try:
        features = make()
        size = features.size
        designs = features.design(Context(np.zeros(dim), np.eye(dim))), features.at(np.zeros(dim))
        shapes = [(d.scores(np.zeros(size)).shape, d.row(np.zeros((), np.intp)).shape) for d in designs]
    except InputError:
        raise
    except Exception as error:  # a custom map may raise anything
        problem = f"fail on {number} actions and a context of {dim} ({error!r})"
        raise InputError("features", problem, ALLOWED) from error
    if set(shapes) != {((number,), (size,))}:
        raise InputError("features", f"give scores and rows of shapes {shapes[0]}", ALLOWED)


def prior(features: FeatureMap, mean: Numbers, cov: Numbers) -> tuple[Array, Array]:
    """Mean (m,) and covariance of theta: (m, m), or (K, k, k) in blocks.

    Where arms have features of their own, the prior may be given for one arm and then holds for each.
    """
    if isinstance(features, PerArm) and in_blocks(features, cov):
        block_cov = validation.covariance("prior_cov", cov, features.block)
        covs = np.tile(block_cov, (features.arms, 1, 1))
    else:
        covs = validation.covariance("prior_cov", cov, features.size)
    if isinstance(features, PerArm) and _has_size(mean, features.block):
        return np.tile(validation.vector("prior_mean", mean, features.block), features.arms), covs
    return validation.vector("prior_mean", mean, features.size), covs


def numbers(features: FeatureMap, cov: Numbers) -> int:
    """How many numbers the covariance has."""
    if isinstance(features, PerArm) and in_blocks(features, cov):
        return features.arms * features.block**2
    return features.size**2


def in_blocks(features: FeatureMap, cov: Numbers) -> bool:
    """Whether a covariance is that of one arm, and so is repeated in independent blocks."""
    return isinstance(features, PerArm) and _has_size(cov, features.block)


def _has_size(value: Numbers, size: int) -> bool:
    """Whether a number, a list or a matrix has this size; False for ragged lists."""
    try:
        return np.shape(value) in ((), (size,), (size, size))
    except ValueError:
        return False
