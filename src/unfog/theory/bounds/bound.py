"""A bound as a value, and the terms that bounds of both settings share."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array
from unfog.theory import conditions
from unfog.theory.conditions import Case, Condition
from unfog.theory.information import VERSIONS, horizons, numbers
from unfog.validation import InputError, one_of


class Bound(NamedTuple):
    """A bound, its parts by name, and where its conditions do not hold.

    >>> import unfog
    >>> from unfog.theory import bounds, conditions
    >>> matrices = [[[0.5]], [[-0.5]]]  # G(a) of two arms
    >>> problem = unfog.GaussianProblem(dim=1, actions=matrices, features="matrix", prior_cov=0.01)
    >>> case = conditions.linear_case(problem.knowledge(), matrices)
    >>> found = bounds.theorem_2(case, [100, 1000])
    >>> found.total.round(1).tolist(), found.holds.tolist(), sorted(found.parts)
    ([27.0, 149.8], [True, True], ['estimation', 'learning', 'tail'])
    """

    name: str
    version: str
    horizon: Array
    parts: dict[str, Array]  # each of the horizon's shape
    broken: tuple[Condition, ...]
    escape: float = 0.0  # caveat: how likely a round is beyond the elliptical potential, see potential.py

    @property
    def total(self) -> Array:
        """The bound itself."""
        return np.asarray(sum(self.parts.values()))

    @property
    def holds(self) -> Array:
        """Where every condition holds."""
        fine = np.ones(self.horizon.shape, bool)
        for condition in self.broken:
            fine = fine & condition.holds
        return fine


def made(
    name: str,
    version: str,
    horizon: Array,
    parts: Mapping[str, Array],
    asked: Sequence[Condition],
    strict: bool,
    escape: float = 0.0,
) -> Bound:
    """A bound, checked."""
    one_of("version", version, VERSIONS)
    broken = tuple(condition for condition in asked if not condition.holds.all())
    if strict and broken:
        first = broken[0]
        raise InputError(f"{name}, {version}", f"does not apply: {first.found}", first.asks)
    shaped = {part: np.broadcast_to(value, horizon.shape) for part, value in parts.items()}
    return Bound(name, version, horizon, shaped, broken, escape)


def combined(
    name: str,
    pieces: Sequence[Bound],
    strict: bool,
    changed: Mapping[str, Array] | None = None,
    more: Sequence[Condition] = (),
) -> Bound:
    """The sum of bounds, with their parts and conditions, and more of both that are not theirs."""
    parts = {part: value for piece in pieces for part, value in piece.parts.items()} | dict(changed or {})
    asked = {condition.asks: condition for piece in pieces for condition in piece.broken}
    first, escape = pieces[0], max(piece.escape for piece in pieces)
    return made(name, first.version, first.horizon, parts, [*asked.values(), *more], strict, escape)


def like_horizons(field: str, value: object, horizon: Array, allowed: str) -> Array:
    """Numbers, one for all horizons or one for each."""
    found, asks = numbers(value), f"{allowed}; one for all horizons, or of their shape {horizon.shape}"
    if found is None or found.ndim > horizon.ndim:
        raise InputError(field, repr(value)[:80], asks)
    try:
        return np.broadcast_to(found, horizon.shape)
    except ValueError:
        raise InputError(field, f"shape {found.shape}", asks) from None


def ratio_limit(size: int, arms: int) -> float:
    """min(m, 2 + 2 ln K): what the lifted information ratio cannot exceed.

    >>> from unfog.theory import bounds
    >>> bounds.ratio_limit(3, arms=20), round(bounds.ratio_limit(30, arms=20), 2)
    (3.0, 7.99)
    """
    return min(float(size), 2 + 2 * float(np.log(arms)))


def learning(case: Case, horizon: Array, prior_var: Array | float, extra: Array | float = 0.0) -> Array:
    """U(m, l); `extra` is added to the sum of the variances of scores, 2 m s^2 ln(1 + T l / (m s^2)).

    >>> import numpy as np
    >>> import unfog
    >>> from unfog.theory import bounds, conditions
    >>> matrices = [[[0.5]], [[-0.5]]]  # G(a) of two arms
    >>> problem = unfog.GaussianProblem(dim=1, actions=matrices, features="matrix", prior_cov=0.01)
    >>> case = conditions.linear_case(problem.knowledge(), matrices)
    >>> bounds.learning(case, np.array([100.0, 400.0]), case.prior_var).round(2).tolist()
    [12.74, 41.93]
    """
    m, noise = case.size, case.reward_var
    variances = 2 * m * noise * np.log1p(horizon * prior_var / (m * noise)) + extra
    return np.sqrt(horizon * ratio_limit(m, case.arms) * variances)


def tail(
    case: Case, horizon: Array, version: str, delta: object, prior_var: Array | float
) -> tuple[Array, Array]:
    """What a theta* outside |theta*|^2 <= u^2 may cost, and u^2 = 2 m l ln(2 m / delta).

    Outside, with probability delta at most, |theta*| adds up to delta sqrt(m l / 2 pi). The paper has another
    delta there: it took the mean over the event for the mean given the event.
    """
    allowed = "a number between 0 and 1, both excluded"
    given = 1 / np.maximum(horizon, 2) if delta is None else delta
    small = like_horizons("delta", given, horizon, allowed)
    if not ((small > 0) & (small < 1)).all():
        raise InputError("delta", repr(delta)[:80], allowed)
    power = 2 if version == "printed" else 1
    cost = 4 * horizon * small**power * np.sqrt(case.size * prior_var / (2 * np.pi))
    return cost, 2 * case.size * prior_var * np.log(2 * case.size / small)


def at_random(case: Case, horizon: object, *, strict: bool = True) -> Bound:
    """The regret of choosing uniformly at random: T E max_a psi(a)'theta* <= T sqrt(2 l ln K).

    >>> import unfog
    >>> from unfog.theory import bounds, conditions
    >>> matrices = [[[0.5]], [[-0.5]]]  # G(a) of two arms
    >>> problem = unfog.GaussianProblem(dim=1, actions=matrices, features="matrix", prior_cov=0.01)
    >>> case = conditions.linear_case(problem.knowledge(), matrices)
    >>> bounds.at_random(case, [100, 200]).total.round(2).tolist()
    [11.77, 23.55]
    """
    t = horizons(horizon)
    asked = [conditions.centred_prior(case), conditions.small_features(case)]
    value = t * np.sqrt(2 * case.prior_var * np.log(case.arms))
    return made("at random", "corrected", t, {"regret": value}, asked, strict)
