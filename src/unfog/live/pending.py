"""Open decisions: how long a reward or a true context may still come; and what is known of closed ones.

Rewards are accepted within `wait` and true contexts within `within`, both counted from the time of the
decision. So decisions stop waiting in the order in which they were made.

The state knows everything about an open decision (`Open`). For a closed one the log is read (`Past`): its
rows say whether it was voided, rewarded or expired, and what was revealed. What becomes of a report is in
live/commands.py.

Of an open decision each agent keeps a `CompactDecision`: what was believed of its context, but neither its
design nor the belief about theta, which are made anew when they are needed. So an open decision takes a few
hundred bytes however many arms there are. Only learners that look back have a belief which cannot be made
again.
"""

import json
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from unfog.agents.base import Evidence, Moment, Term
from unfog.agents.grow import grown_belief
from unfog.agents.round import Decision, Denoised
from unfog.agents.runner import Runner
from unfog.channel.knowledge import Knowledge
from unfog.features import Context, FeatureMap
from unfog.live.backend import Row
from unfog.live.errors import Gone, Unknown
from unfog.maths.arrays import Array, Ints
from unfog.maths.gaussian import Belief
from unfog.maths.trees import contiguous


class CompactTerm(NamedTuple):
    """What a round says of theta, where it can be taken back; of its row only what is not zero."""

    places: Ints  # (n,)
    row: Array  # (n,)
    variance: Array  # (1,)
    value: Any  # (1,), or () where it is the reward

    @classmethod
    def of(cls, term: Term) -> Self:
        """Without the zeros of its row."""
        (places,) = np.nonzero(term.row[0])
        return cls(places, term.row[0, places], np.broadcast_to(term.variance, (1,)), term.value)

    def whole(self, size: int) -> Term:
        """With a row (1, m)."""
        row = np.zeros((1, size))
        row[0, self.places] = self.row
        return Term(row, self.variance, self.value)


class CompactDecision(NamedTuple):
    """An open decision as one agent saw it."""

    noisy: Array  # (1, d)  as the denoiser was shown it
    context: Context  # as it was believed to be
    moment: Moment | None = None
    belief: Belief | None = None  # about theta, of learners that look back
    reward: Array | None = None  # (1,)
    known: Array | None = None  # (1, d)  the true context as far as it is known, not a number elsewhere
    term: CompactTerm | None = None

    @classmethod
    def of(cls, denoised: Denoised) -> Self:
        """When a reading was denoised, before its reward."""
        reading = denoised.reading
        made: Self = contiguous(cls(reading.noisy, denoised.context, reading.moment, denoised.belief))
        return made

    def whole(self, runner: Runner, arm: int, features: FeatureMap, theta: Belief | None = None) -> Decision:
        """The decision as the round knows it, with what is believed of theta by now, unless that is given."""
        agent, place = runner.agent, np.asarray([arm])
        if agent.awaits_context and self.known is not None:
            design, context = features.at(self.known), None
        else:
            design, context = features.design(self.context), self.context
        belief = theta or self.belief or runner.theta()
        rewinds = agent.can.look_back
        unbiased = None if rewinds is None else rewinds[0].unbiased(runner.setup.denoiser, self.noisy)
        return Decision(
            place,
            self.context,
            Evidence(features, design, belief, place, unbiased, context=context),
            self.noisy,
            reward=self.reward,
            term=None if self.term is None else self.term.whole(runner.known.prior_mean.shape[-1]),
            known=self.known,
            moment=self.moment,
        )

    def after(self, decision: Decision) -> Self:
        """What is kept of it once the round is done with it."""
        term = None if decision.term is None else CompactTerm.of(decision.term)
        belief = None if decision.reward is not None else self.belief
        known = contiguous(decision.known)
        return self._replace(reward=decision.reward, known=known, term=term, belief=belief)

    def grown(self, known: Knowledge) -> Self:
        """After arms came; learners that look back have kept a belief with it."""
        if self.belief is None:
            return self
        return self._replace(belief=contiguous(grown_belief(known, self.belief)))


class Open:
    """A decision that may still change something: its reward, or its true context, may come."""

    __slots__ = (
        "arm",
        "dropped",
        "expired",
        "id",
        "lost",
        "number",
        "paid",
        "place",
        "rewards",
        "seen",
        "settled",
        "shown",
        "time",
        "unit",
        "vector",
        "voided",
    )

    def __init__(
        self,
        id_: str,
        number: int,
        unit: str,
        time: float,
        arm: str,
        place: int,
        vector: Any,
        seen: dict[str, CompactDecision],  # by agent
        lost: tuple[int, ...] = (),
    ) -> None:
        self.id, self.number, self.unit, self.time = id_, number, unit, time
        self.arm, self.place, self.vector, self.seen = arm, place, vector, seen
        self.lost = lost  # coordinates of its reading
        self.rewards: list[float] = []  # kept until the wait is over
        self.paid: float | None = None  # what was learnt
        self.shown: dict[str, float] = {}  # of the true context
        self.settled = self.voided = self.expired = self.dropped = False

    @property
    def brought(self) -> dict[str, Any] | None:
        """The arm that was chosen with its vector, where arms came with the decision."""
        return None if self.vector is None else {self.arm: self.vector}

    def content(self) -> tuple[Any, ...]:
        """The content as nested values, copied where they change later."""
        first = self.id, self.number, self.unit, self.time, self.arm, self.place, self.vector
        flags = self.settled, self.voided, self.expired, self.dropped
        return (*first, {**self.seen}, self.lost, [*self.rewards], self.paid, {**self.shown}, flags)

    @classmethod
    def filled(cls, content: Sequence[Any]) -> "Open":
        """From what `content` gave."""
        found = cls(*content[:9])
        found.rewards, found.paid, found.shown = content[9:12]
        found.settled, found.voided, found.expired, found.dropped = content[12]
        return found


class Windows:
    """The open decisions by id, oldest first, and what is waited for of each."""

    def __init__(self, wait: float | None, within: float | None) -> None:
        """None is open yet."""
        self._wait, self._within = wait, within
        self.open: dict[str, Open] = {}  # all of them
        # Ordered dictionaries, since their first entry is found at once also after many were taken away.
        self._waiting = OrderedDict[str, None]()  # their reward may come, and there is an end to that
        self._hidden = OrderedDict[str, None]()  # their true context may come, and an agent learns from it
        self.overdue: dict[str, None] = {}  # a reward awaits a context that can come no more
        self._recent: dict[str, list[str]] = {}  # of each unit, for agents that learn from a round again

    def enter(self, found: Open, hidden: bool, again: bool) -> None:
        """One more; whether someone learns from its true context, and from the round once more later."""
        self.open[found.id] = found
        if self._wait is not None:
            self._waiting[found.id] = None
        if hidden:
            self._hidden[found.id] = None
        if again:
            self._recent.setdefault(found.unit, []).append(found.id)

    def settle(self, found: Open) -> None:
        """Its reward is no longer waited for."""
        found.settled = True
        self._waiting.pop(found.id, None)

    def is_hidden(self, found: Open) -> bool:
        """Whether its true context may still come, to someone who learns from it."""
        return found.id in self._hidden

    def unpaid(self, time: float) -> Iterator[Open]:
        """The decisions whose wait for a reward is over at this time."""
        return self._past(self._waiting, self._wait, time)

    def unseen(self, time: float) -> Iterator[Open]:
        """The decisions whose true context would be too late at this time."""
        return self._past(self._hidden, self._within, time)

    def _past(self, names: OrderedDict[str, None], span: float | None, time: float) -> Iterator[Open]:
        for name in names:
            if span is None or self.open[name].time + span > time:
                return
            yield self.open[name]

    def shut(self, found: Open) -> None:
        """Its true context is too late."""
        del self._hidden[found.id]

    def before(self, unit: str, rounds: int) -> Open | None:
        """The decision of a unit so many rounds before its last, where it is still open."""
        recent = self._recent.get(unit, ())
        return self.open.get(recent[-1 - rounds]) if len(recent) > rounds else None

    def forget(self, unit: str, rounds: int) -> list[Open]:
        """Decisions of a unit that are so many rounds ago, or more: they are not learnt from again."""
        recent = self._recent.get(unit, [])
        gone = [recent.pop(0) for _ in range(len(recent) - rounds)]
        return [self.open[name] for name in gone if name in self.open]

    def is_recent(self, found: Open) -> bool:
        """Whether it will be learnt from again."""
        return found.id in self._recent.get(found.unit, ())

    def close(self, found: Open) -> None:
        """Nothing can change it any more."""
        for names in (self.open, self._hidden, self.overdue):
            names.pop(found.id, None)

    def content(self) -> dict[str, Any]:
        """The content as nested values, copied where they change later."""
        return {
            "open": [found.content() for found in self.open.values()],
            "waiting": list(self._waiting),
            "hidden": list(self._hidden),
            "overdue": list(self.overdue),
            "recent": {unit: [*names] for unit, names in self._recent.items()},
        }

    def fill(self, content: dict[str, Any]) -> None:
        """Take back what `content` gave."""
        self.open = {one[0]: Open.filled(one) for one in content["open"]}
        self._waiting, self._hidden = (OrderedDict.fromkeys(content[n]) for n in ("waiting", "hidden"))
        self.overdue, self._recent = dict.fromkeys(content["overdue"]), content["recent"]


class Past:
    """A decision that is closed, by what the log says of it."""

    def __init__(self, decision: str, rows: Sequence[Row]) -> None:
        """Refuse one that there never was."""
        self.bodies = [(row.kind, json.loads(row.body)) for row in rows]
        if not any(kind == "decide" for kind, _ in self.bodies):
            raise Unknown("decision", repr(decision), "the id of a decision of this problem")
        self.time = next(row.time for row in rows if row.kind == "decide")
        self.decided = next(body for kind, body in self.bodies if kind == "decide")
        if self.decided.get("erased"):
            raise Gone("decision", repr(decision), "a decision that was not erased")

    @property
    def voided(self) -> bool:
        """Whether it was never shown."""
        return any(kind == "void" for kind, _ in self.bodies)

    @property
    def paid(self) -> float | None:
        """What was learnt of its reward."""
        for kind, body in self.bodies:
            if kind == "reward" and body["outcome"] in ("learnt", "waits"):
                return float(body["value"])
            if kind == "expire" and body["what"] == "reward" and body["value"] is not None:
                return float(body["value"])
        return None

    @property
    def expired(self) -> bool:
        """Whether the wait for its reward was over."""
        return any(kind == "expire" and body["what"] == "reward" for kind, body in self.bodies)

    @property
    def shown(self) -> dict[str, float]:
        """What was revealed."""
        found: dict[str, float] = {}
        for kind, body in self.bodies:
            if kind == "reveal" and body["outcome"] in ("learnt", "noted"):
                found |= body["context"]
        return found
