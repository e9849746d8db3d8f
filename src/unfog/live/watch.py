"""What is watched while decisions are made: is the channel as told, do rewards fall where they were expected?

Of the agent that is obeyed. All of it is folded from events as beliefs are, so that a replay watches again.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from unfog.channel import innovations
from unfog.channel.innovations import Innovations
from unfog.live import tallies
from unfog.live.made import Made
from unfog.live.mind import Seen
from unfog.live.opened import Open
from unfog.live.tallies import Happening, Tallies
from unfog.live.tracks import Bias, Tracks
from unfog.maths.arrays import Array

DAY = 86_400.0  # seconds; a day is one of the store's clock, from midnight in Greenwich
ANY = "any"  # stands for all arms where they come with each decision


class Watch:
    """Counts, coverage, the alarm, and how beliefs went."""

    def __init__(self, made: Made, expects: bool) -> None:
        """Before anything happened; whether the agent expects something of readings."""
        dim, arms = len(made.terms.context), len(made.terms.arms)
        self.tallies: Tallies = tallies.none_yet(dim, max(arms, 1))
        self.readings: Innovations | None = innovations.none_yet(dim) if expects else None
        self.tracks = Tracks(dim)
        self._day = (0, 0)  # that of the newest decision, and how many decisions it had
        self._made, self._binary = made, made.terms.rewards == "bernoulli"

    def content(self) -> tuple[Any, ...]:
        """All of it, in nested values."""
        return self.tallies, self.readings, self.tracks.content(), self._day

    def fill(self, content: tuple[Any, ...]) -> None:
        """As it was."""
        self.tallies, self.readings, tracks, self._day = content
        self.tracks.fill(tracks)

    def decided(self, place: int, noisy: Array, law: tuple[Array, Array] | None) -> None:
        """A decision, on a reading (1, d) of which this mean and variance were expected, (1, d) each."""
        self.tallies = tallies.decided(self.tallies, place)
        if self.readings is not None and law is not None:
            self.readings = innovations.after(self.readings, noisy[0], law[0].reshape(-1), law[1].reshape(-1))

    def dated(self, time: float) -> None:
        """When that decision was made."""
        self._day = int(time // DAY), 1 + self.decisions_on(time)

    def decisions_on(self, time: float) -> int:
        """How many were made on the day of this time, up to now."""
        return self._day[1] if self._day[0] == int(time // DAY) else 0

    def believed(self, number: int, time: float, unit: str, bias: Bias) -> None:
        """What was believed of a unit's bias when a decision was made: a sample is kept now and then."""
        self.tracks.decided(number, time, unit, bias, self.readings)

    def rewarded(self, place: int, value: float, law: tuple[Array, Array] | None) -> None:
        """A reward that is learnt, of which this mean and variance, (1,) each, were expected."""
        said = None if law is None else (law[0].item(), law[1].item())
        self.tallies = tallies.rewarded(self.tallies, place, value, said, binary=self._binary)

    def held_against(self, found: Open, seen: Seen, news: Mapping[str, float]) -> None:
        """What was read, its bias included, and what was believed, against what is true by now."""
        units, (mean, cov) = self._made.units, seen.context
        noisy = seen.noisy[0] + units.bias / units.scale
        noisy[list(found.lost)] = np.nan
        variance = (cov if cov.ndim == 2 else cov[0]).diagonal()
        self.tallies = tallies.revealed(self.tallies, noisy, mean[0], variance, self._made.whole(news)[0])

    def looked_back(self, body: Mapping[str, Any]) -> None:
        """A true context of a decision that is closed: nothing is learnt, but what was believed is judged."""
        made, then = self._made, body["then"]
        known = {name: x for name, x in then["noisy"].items() if x is not None}
        sd = np.array([then["sd"][name] for name in made.terms.context]) / made.units.scale
        noisy, mean, true = (made.whole(x)[0] for x in (known, then["denoised"], body["context"]))
        self.tallies = tallies.revealed(self.tallies, noisy, mean, sd**2, true)

    def happened(self, what: Happening, times: int = 1) -> None:
        """Once more; or once less, -1."""
        self.tallies = tallies.happened(self.tallies, what, times)

    def counted(self, kind: str, body: Mapping[str, Any]) -> None:
        """Of an event, what is only counted."""
        outcome = body.get("outcome")
        if kind == "reward" and outcome == "late":
            self.happened("late")
        elif kind == "reveal" and outcome == "late":
            self.happened("late_contexts")
        elif kind == "void" and outcome == "void":
            self.happened("voided")
        elif kind == "expire" and body["what"] == "context":
            self.happened("dropped")
