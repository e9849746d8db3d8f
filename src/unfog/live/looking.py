"""A look at a problem: its log, what is believed, whether it works; what has expired is written down."""

from typing import TYPE_CHECKING, Any

from unfog import validation
from unfog.live import asking, history, inside
from unfog.live.errors import Unknown
from unfog.live.handle import Handle
from unfog.live.history import Asked
from unfog.live.joined import Around
from unfog.live.minds import OBEYED
from unfog.live.ring import MOST
from unfog.live.state import State
from unfog.live.vitals import Vitals, vitals
from unfog.validation import count, nearest

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


class Looking(Handle):
    """Verbs that decide and learn nothing."""

    def events(self, since: int = 0) -> list[dict[str, Any]]:
        """The log after the event `since`: mappings with seq, kind, decision, time and more."""
        return list(self.store.events(self.name, since))

    def pending(self) -> list[str]:
        """Decisions whose reward may still come, oldest first."""
        with self.store.lock:
            return [found.id for found in self.store.up_to_date(self.name).open.values() if not found.settled]

    def about(self) -> dict[str, Any]:
        """What there is to know of the problem itself, as JSON has it: arms, units, shadows, counts."""
        with self.store.lock:
            return inside.about(self.store.up_to_date(self.name), self.name, self.store.now(self.name))

    def vitals(self) -> Vitals:
        """A few numbers for those who watch many problems."""
        with self.store.lock:
            return vitals(self.store.state(self.name), self.store.now(self.name))

    def belief(self, unit: str | None = None) -> "xr.Dataset":
        """What is believed: the bias of a unit by name with its standard deviation, theta, weights."""
        with self.store.lock:
            return inside.belief(self.store.up_to_date(self.name), self._unit(unit))

    def expected(
        self, context: Any, *, unit: str | None = None, arms: Any = None, at: Any = None, noise: Any = None
    ) -> "xr.Dataset":
        """What each arm would be expected to earn in this context; nothing is decided or learnt."""
        ask = asking.ask(self.store.made(self.name), context, unit, arms, at, noise)
        with self.store.lock:
            state = self.store.up_to_date(self.name)
            state.arms.check(ask)
            return inside.expected(state, ask)

    def diagnostics(self) -> "xr.Dataset":
        """Whether it works: readings against the channel, rewards against what was said, arms, pending."""
        with self.store.lock:
            return inside.diagnosed(self.store.up_to_date(self.name), self.store.now(self.name))

    def history(self, unit: str | None = None, points: int = 2000) -> dict[str, Any]:
        """The past of all units or of one, as JSON can hold it: what a page shows. See live/history.py."""
        points = count("points", points, 1, MOST)
        with self.store.lock:
            state, now = self.store.state(self.name), self.store.now(self.name)
            unit = None if unit is None else self._unit(unit)
            self.store.expire(self.name, state, now)
            asked, around = self._asked(state, unit, points), self._around(state)
            ring, upto, epoch = self.store.ring(self.name), self.store.log.last, self.store.log.epoch
        self.store.log.commit(upto, epoch)
        with ring.filled(around, upto) as kept:
            return history.told(asked, kept)

    def _asked(self, state: State, unit: str | None, points: int) -> Asked:
        watch, terms = state.watch, self.terms
        decisions: int | None = watch.tallies.counts.decisions
        track = watch.tracks.whole(watch.readings)
        if unit is not None:
            decisions, track = watch.tracks.decisions(unit), watch.tracks.of(unit, state.mind.bias(unit))
        shadows = [name for name in state.minds if name != OBEYED]
        binary, units = terms.rewards == "bernoulli", state.made.units
        whole = self.name, unit, points, terms.context, state.arms.order, shadows, binary
        return Asked(*whole, decisions, track, units)

    def _around(self, state: State) -> Around:
        arms, terms = state.arms, self.terms
        return Around(state.number, terms.context, terms.floor, arms.place, tuple(arms.eras))

    def figure(self) -> "Figure":
        """The same as a picture."""
        from unfog.live.figure import figure

        return figure(self.diagnostics(), self.name)

    def _unit(self, unit: str | None) -> str:
        """A unit that something was read of; unless named the only one, or no one's."""
        known = list(self.store.state(self.name).mind.channels)
        if unit is None:
            return known[0] if len(known) == 1 else ""
        if validation.check_name("unit", unit) not in known:
            raise Unknown("unit", repr(unit), "a unit that decisions were made for", nearest(unit, known))
        return unit

    def fingerprint(self) -> str:
        """A hash of all that is remembered: beliefs, pending decisions, and what comes next."""
        with self.store.lock:
            return self.store.digest(self.name)
