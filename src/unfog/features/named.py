"""Feature maps by name, as specs say them: built in, or `module:name` of a builder that can be imported."""

from unfog.features.contract import MapBuilder
from unfog.features.matrix import matrix
from unfog.features.per_arm import per_arm
from unfog.features.product import product
from unfog.features.quadratic import quadratic
from unfog.inputs import REFERENCE, InputError, imported

BUILT_IN: dict[str, MapBuilder] = {
    "quadratic": quadratic,
    "product": product,
    "per_arm": per_arm,
    "matrix": matrix,
}
ALIASES = {"linear": "product"}  # what specs said before there were two linear maps
IMPORTED = "module:name of a function from actions to a map"


def builder(features: str | MapBuilder) -> MapBuilder:
    """The builder of this name, or the one given."""
    if callable(features):
        return features
    if features == "quadrature":
        allowed = f"unfog.features.quadrature(phi, dim) in Python, or {IMPORTED} made so"
        raise InputError("features", "'quadrature' alone does not say which phi", allowed)
    if isinstance(features, str) and REFERENCE.fullmatch(features):
        made = imported("features", features, IMPORTED)
        if not callable(made):
            raise InputError("features", f"{features!r} is {made!r}", IMPORTED)
        return made
    name = ALIASES.get(features, features) if isinstance(features, str) else None
    if name not in BUILT_IN:
        raise InputError("features", repr(features), f"{', '.join(BUILT_IN)}, or {IMPORTED}")
    return BUILT_IN[name]
