"""The contract of feature maps: `check_feature_map` tests any map against it."""

from typing import Any

import numpy as np

from unfog.features import Context, Design, FeatureMap, MapBuilder
from unfog.maths.arrays import Array
from unfog.maths.gaussian import from_moments
from unfog.testing.common import TRIALS, normals, require, same

SAMPLES = 20_000
SIGMAS = 6.0


def check_feature_map(build: MapBuilder, actions: Array, dim: int) -> None:
    """Raise ContractError, with the name of the map and the rule, if it breaks one.

    `build` turns actions (K, ...) into a map of contexts with `dim` coordinates. Its moments are compared
    with those of `at` over many contexts.

    >>> import numpy as np
    >>> import unfog
    >>> unfog.testing.check_feature_map(unfog.features.product, np.eye(2), 2)  # all is well
    """
    features = build(actions)
    who = f"feature map {type(features).__name__}"
    size, arms = features.size, features.arms
    require(size >= 1 and arms >= 1 and features.cells >= 0, who, "needs a size, arms and cells")
    half = np.tril(0.3 * normals("half", dim, dim)) + 0.5 * np.eye(dim)
    context = Context(0.5 + normals("mean", dim), half @ half.T)
    design = features.design(context)
    _check_shapes(who, design, size, arms)
    _check_moments(who, features, design, context, half)
    _check_design(who, design, size, arms)
    _check_shared(who, features, dim)


def _arm(arm: Any) -> Any:
    return np.asarray(arm)


def _check_shapes(who: str, design: Design, size: int, arms: int) -> None:
    shapes = design.scores(np.ones(size)).shape, design.row(_arm(0)).shape, design.covariance(_arm(0)).shape
    expected = (arms,), (size,), (size, size)
    require(shapes == expected, who, f"scores, row and covariance have shapes {shapes}, not {expected}")


def _check_moments(who: str, features: FeatureMap, design: Design, context: Context, half: Array) -> None:
    """Check the mean and covariance of phi over contexts, within their Monte Carlo error."""
    contexts = context.mean + normals("contexts", SAMPLES, half.shape[0]) @ half.T
    for arm in {0, features.arms - 1}:
        rows = np.stack([features.at(one).row(_arm(arm)) for one in contexts])
        error = SIGMAS * rows.std(0) / SAMPLES**0.5 + 1e-9
        is_near = np.abs(rows.mean(0) - design.row(_arm(arm))) <= error
        require(is_near.all(), who, f"row({arm}) is not the mean of phi")
        deviations = rows - rows.mean(0)
        products = deviations[:, :, None] * deviations[:, None, :]
        error = 2 * SIGMAS * products.std(0) / SAMPLES**0.5 + 1e-9
        is_near = np.abs(products.mean(0) - design.covariance(_arm(arm))) <= error
        require(is_near.all(), who, f"covariance({arm}) is not that of phi")


def _check_design(who: str, design: Design, size: int, arms: int) -> None:
    """Check that the other methods agree with rows and covariances."""
    theta, root = normals("theta", size), np.tril(normals("root", size, size))
    belief: Any = from_moments(theta, root @ root.T + np.eye(size))
    cov = belief.root @ belief.root.T
    rows = np.stack([design.row(_arm(arm)) for arm in range(arms)])
    require(same(design.scores(theta), rows @ theta), who, "scores are not rows times theta")
    spread = np.einsum("ki,ij,kj->k", rows, cov, rows)
    require(same(design.variances(belief), spread), who, "variances are not those of the scores")
    for arm in range(arms):
        inner = design.covariance(_arm(arm))
        expected = theta @ inner @ theta + np.trace(inner @ cov)
        require(same(design.context_variance(belief, _arm(arm)), expected), who, "context_variance is off")
        require(same(design.context_slope(theta, _arm(arm)), inner @ theta), who, "context_slope is off")


def _check_shared(who: str, features: FeatureMap, dim: int) -> None:
    """Check that a map can be applied to a batch of contexts."""
    contexts, arm = normals("batch", TRIALS, dim), np.arange(TRIALS) % features.arms
    try:
        rows = features.at(contexts).row(arm)
    except (ValueError, IndexError) as error:
        require(False, who, f"one map cannot serve a batch of contexts ({error})")
    alone = np.stack([features.at(one).row(_arm(a)) for one, a in zip(contexts, arm, strict=True)])
    require(same(rows, alone), who, "a context's row depends on the contexts beside it")
