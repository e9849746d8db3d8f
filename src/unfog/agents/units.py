"""What is remembered of the channel, for each of several units: persons or devices with biases of their own.

Units are an axis in front of all others: every array of a denoiser's state, (..., core), becomes
(units, batch, core). A round takes out the state of its unit, which may be another in every trial of a batch,
and puts the new one in its place. With one unit there is no such axis, and nothing to take out.
"""

from typing import Any, NamedTuple

from unfog.maths.arrays import Array, Ints
from unfog.maths.trees import each


class Several(NamedTuple):
    """How many units, in a batch of which shape."""

    number: int
    batch: tuple[int, ...] = ()


def repeated(state: Any, several: Several) -> Any:
    """The first state, once for each unit and trial."""

    def repeat(x: Array) -> Array:
        xp = x.__array_namespace__()
        return xp.broadcast_to(x, (several.number, *several.batch, *x.shape))

    return each(repeat, state)


def of(state: Any, unit: Ints | None, noisy: Array) -> Any:
    """The state of the unit whose noisy context (..., d) this is."""
    if unit is None:
        return state
    xp = noisy.__array_namespace__()
    places = xp.meshgrid(*(xp.arange(size) for size in noisy.shape[:-1]), indexing="ij")
    return each(lambda x: x[(unit, *places)], state)


def put(state: Any, unit: Ints | None, noisy: Array, new: Any) -> Any:
    """The states of all units, with a new one for this."""
    if unit is None:
        return new
    xp, batch = noisy.__array_namespace__(), noisy.shape[:-1]

    def replace(old: Array, now: Array) -> Array:
        number = xp.arange(old.shape[0]).reshape(-1, *[1] * len(batch))
        here = number == xp.broadcast_to(xp.asarray(unit), batch)
        found: Array = xp.where(here.reshape(*here.shape, *[1] * (old.ndim - here.ndim)), now, old)
        return found

    return each(replace, state, new)
