"""Feature maps phi(a, c), in which rewards are linear, and the moments of phi under a belief about c.

A map holds the actions; shown a belief about the context it yields a `Design`, which knows the expected
features psi(a) = E[phi(a, c)] of every arm without building the (K, m) matrix where structure avoids it.

The names here are the builders: `features.quadratic(actions)` is a map. `matrix`, `product` and `own` are in
features/linear.py, `slopes` is in features/per_arm.py, and the others are in files of their names.
"""

from unfog.features.base import Context, Design, FeatureMap, Linear, MapBuilder
from unfog.features.linear import matrix, own, product
from unfog.features.per_arm import per_arm, slopes
from unfog.features.quadratic import quadratic
from unfog.features.quadrature import quadrature

__all__ = [
    "Context",
    "Design",
    "FeatureMap",
    "Linear",
    "MapBuilder",
    "matrix",
    "own",
    "per_arm",
    "product",
    "quadratic",
    "quadrature",
    "slopes",
]
