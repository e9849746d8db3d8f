"""A log of decisions as the evaluation of policies wants it, whatever it was read from.

Row t is a round: the noisy context that the logger saw, the arm it drew and with which probability, and the
reward. Rows are in the order of time. Everything is checked when a log is read (evaluation/read), so that
nothing further inside asks again.
"""

from typing import Any, NamedTuple

import numpy as np

from unfog.maths.arrays import Array, Bools, Ints


class Log(NamedTuple):
    """n rounds of K arms and d coordinates."""

    coordinates: tuple[str, ...]  # d names
    arms: tuple[str, ...]  # K names
    noisy: Array  # (n, d)  as the logger saw it; not a number where a coordinate was lost
    arm: Ints  # (n,)  that was drawn
    reward: Array  # (n,)
    probability: Array  # (n,)  of that arm, given what the logger saw
    probabilities: Array | None = None  # (n, K)  of every arm, zero where it could not be drawn
    true: Array | None = None  # (n, d)  the true context, not a number where it is not known
    time: Array | None = None  # (n,)  in any unit, never decreasing
    unit: Ints | None = None  # (n,)  whose context it is, numbered from 0: each unit has a bias of its own
    units: tuple[str, ...] = ()  # their names
    source: str = ""  # what it was read from, for people
    notes: tuple[str, ...] = ()  # what was passed over in reading it, for people
    offered: Bools | None = None  # (n, K)  which arms there were to choose from; None: all of them
    channel: Any = None  # what the log itself tells of noise, as `unfog.channel.channel.channel` takes it

    @property
    def rounds(self) -> int:
        """How many: n."""
        return len(self.arm)

    @property
    def support(self) -> Bools | None:
        """Which arms could be drawn, (n, K); None where the log does not say."""
        return None if self.probabilities is None else self.probabilities > 0

    def rows(self, places: Ints | slice) -> "Log":
        """Some of the rounds."""
        cut: dict[str, Any] = {
            name: value[places] for name, value in self._asdict().items() if isinstance(value, np.ndarray)
        }
        return self._replace(**cut)

    def known(self) -> Bools:
        """Where the whole true context is known, (n,)."""
        if self.true is None:
            return np.zeros(self.rounds, bool)
        return np.asarray(~np.isnan(self.true).any(axis=1))
