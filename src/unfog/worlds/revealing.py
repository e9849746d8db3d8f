"""Which true contexts a world shows to agents that want them, and how late.

    revealed      the share of the rounds whose context is shown, `late` rounds after the reward
    reveal        "random": each round by itself with that probability; "every": at equal distances, the
                  rounds t = 0, 1, ... in which floor((t + 1) revealed) grows; "asked": those asked for
    reveal_share  of a context that is shown, every coordinate by itself is, with this probability

A round has 1 + d uniform numbers of its own, from a stream that nothing else is drawn from: a context is
shown where the first is below `revealed`, a coordinate where its own is below `reveal_share`. So what is
shown goes with nothing else that happens, is the same for all agents, and is nested: what is shown at random
at one share is shown at every larger one, in runs that have everything else in common.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from unfog import validation
from unfog.maths.arrays import Array, Ints
from unfog.validation import InputError

MOST_LATE = 10_000
WAYS = ("random", "every", "asked")
ROUNDING = 1e-9  # (t + 1) revealed is a whole number where it is one to so many digits


@dataclass(frozen=True, kw_only=True, eq=False)
class RevealFields:
    """What is shown of true contexts: fields that every world has."""

    revealed: float = 1.0
    reveal: str = "random"
    reveal_share: float = 1.0
    late: int = 0

    @property
    def asked(self) -> bool:
        """Whether true contexts are shown where an agent asks for them, and not otherwise."""
        return self.reveal == "asked"

    @property
    def chosen(self) -> bool:
        """Whether it is decided round by round what is shown."""
        return self.asked or self.revealed < 1 or self.reveal_share < 1

    @property
    def partial(self) -> bool:
        """Whether some of true contexts is never shown, or only later than their rewards."""
        return self.late > 0 or self.chosen

    def shown(self, uniforms: Array, number: Ints) -> Array | None:
        """1 where it is shown, 0 where not, of a context (...,) or of its coordinates (..., d); None: all.

        Uniforms (..., 1 + d) of the rounds of these numbers. Nothing is shown that would have to be asked
        for: who asks puts what was asked for in its place.
        """
        if not self.chosen:
            return None
        xp, first = uniforms.__array_namespace__(), uniforms[..., 0]
        if self.asked:
            return xp.zeros_like(first)
        random = self.reveal == "random"
        whole: Any = first < self.revealed if random else _grows(self.revealed, number, first)
        if self.reveal_share == 1:
            return whole.astype(first.dtype)
        found: Array = (whole[..., None] & (uniforms[..., 1:] < self.reveal_share)).astype(first.dtype)
        return found


def _grows(share: float, number: Ints, like: Array) -> Array:
    """Where floor((t + 1) share) is more than floor(t share), in the shape of another array."""
    xp = like.__array_namespace__()
    before, after = (xp.floor(xp.asarray(number + one) * share + ROUNDING) for one in (0, 1))
    found: Array = xp.broadcast_to(after > before, like.shape)
    return found


def check(fields: RevealFields) -> None:
    """Refuse what cannot be shown."""
    check_share("revealed", fields.revealed, 1.0)
    check_share("reveal_share", fields.reveal_share, 1.0)
    validation.one_of("reveal", fields.reveal, WAYS)
    validation.count("late", fields.late, 0, MOST_LATE)


def check_share(field: str, share: object, most: float) -> None:
    """Refuse what is no number from 0 to so much."""
    number = isinstance(share, int | float | np.number) and not isinstance(share, bool)
    if not number or not 0 <= share <= most:  # type: ignore[operator]
        raise InputError(field, validation.shown(share), f"a number from 0 to {most:g}")
