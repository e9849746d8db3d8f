"""Open decisions, and how long their rewards and true contexts may still come; and closed decisions.

Rewards are accepted within `reward_window` and true contexts within `context_window`, both counted from the
time of the decision. So decisions stop waiting in the order in which they were made.

The state knows everything about an open decision (`PendingDecision`). For a closed one the log is read
(`Past`): its rows say whether it was cancelled, rewarded or expired, and what was revealed. What becomes of a
report is in live/commands.py.

For each agent, an open decision has a `CompactDecision`: the belief about its context, but neither its design
nor the belief about theta, which are computed again when they are needed. So an open decision takes a few
hundred bytes, however many arms there are. Only learners that look back have a belief that cannot be computed
again.
"""

import json
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from unfog.agents import round as rounds
from unfog.agents.base import Evidence, Moment, Term
from unfog.agents.grow import grow_belief
from unfog.agents.round import Decision, Denoised
from unfog.agents.runner import Runner
from unfog.channel.knowledge import Knowledge
from unfog.features import Context, FeatureMap
from unfog.live.backend import Row
from unfog.live.errors import DecisionClosedError
from unfog.maths.arrays import Array, Ints
from unfog.maths.gaussian import Belief
from unfog.maths.trees import contiguous


class CompactTerm(NamedTuple):
    """The term that a round adds to the belief about theta, without the zeros of its row."""

    indices: Ints  # (n,)
    row: Array  # (n,), or (J, n) where there are candidates
    variance: Array  # (1,), or (1, J)
    value: Any  # (1,), or () where it is the reward

    @classmethod
    def of(cls, term: Term) -> Self:
        """Drop the zeros of a term's row."""
        rows = term.row[0]
        (indices,) = np.nonzero(rows if rows.ndim == 1 else rows.any(0))
        return cls(
            indices, rows[..., indices], np.broadcast_to(term.variance, (1, *rows.shape[:-1])), term.value
        )

    def whole(self, size: int) -> Term:
        """The term with a full row, (1, m)."""
        row = np.zeros((1, *self.row.shape[:-1], size))
        row[0, ..., self.indices] = np.moveaxis(self.row, -1, 0)
        return Term(row, self.variance, self.value)


class CompactDecision(NamedTuple):
    """An open decision as one agent sees it."""

    noisy: Array  # (1, d)  as the denoiser got it
    context: Context  # the belief about it at the decision
    moment: Moment | None = None
    belief: Belief | None = None  # about theta, of learners that look back
    reward: Array | None = None  # (1,)
    known: Array | None = None  # (1, d)  the true context, NaN where it is not known
    term: CompactTerm | None = None

    @classmethod
    def of(cls, denoised: Denoised) -> Self:
        """From a denoised reading, before its reward."""
        reading = denoised.reading
        compact: Self = contiguous(cls(reading.noisy, denoised.context, reading.moment, denoised.belief))
        return compact

    def whole(self, runner: Runner, arm: int, features: FeatureMap, theta: Belief | None = None) -> Decision:
        """The decision as a round needs it; `theta` defaults to the current belief about theta."""
        agent, arms = runner.agent, rounds.for_each_candidate(runner.agent, np.asarray([arm]))
        if agent.awaits_context and self.known is not None:
            design, context = features.at(self.known), None
        else:
            design, context = runner.design(features, self.context), self.context
        belief = theta or self.belief or runner.theta()
        look_back = agent.can.look_back
        unbiased = None if look_back is None else look_back[0].unbiased(runner.setup.denoiser, self.noisy)
        return Decision(
            np.asarray([arm]),
            self.context,
            Evidence(features, design, belief, arms, unbiased, context=context),
            self.noisy,
            reward=self.reward,
            term=None if self.term is None else self.term.whole(runner.known.prior_mean.shape[-1]),
            known=self.known,
            moment=self.moment,
        )

    def after(self, decision: Decision) -> Self:
        """The compact form of the decision that a round has returned."""
        term = None if decision.term is None else CompactTerm.of(decision.term)
        belief = None if decision.reward is not None else self.belief
        known = contiguous(decision.known)
        return self._replace(reward=decision.reward, known=known, term=term, belief=belief)

    def grown(self, known: Knowledge) -> Self:
        """Extend the belief, if it has one, to arms that were added."""
        if self.belief is None:
            return self
        return self._replace(belief=contiguous(grow_belief(known, self.belief)))


class PendingDecision:
    """A decision whose reward or true context may still come."""

    __slots__ = (
        "arm",
        "dropped",
        "expired",
        "id",
        "is_cancelled",
        "lost",
        "number",
        "paid",
        "place",
        "revealed",
        "rewards",
        "seen",
        "settled",
        "time",
        "unit",
        "vector",
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
        self.lost = lost  # coordinates that its reading lacks
        self.rewards: list[float] = []  # kept until the reward window is over
        self.paid: float | None = None  # the reward that was learnt
        self.revealed: dict[str, float] = {}  # revealed coordinates of the true context
        self.settled = self.is_cancelled = self.expired = self.dropped = False

    @property
    def brought(self) -> dict[str, Any] | None:
        """The chosen arm with its vector, if arms came with the decision."""
        return None if self.vector is None else {self.arm: self.vector}

    def content(self) -> tuple[Any, ...]:
        """The content as nested values, copied where they change later."""
        first = self.id, self.number, self.unit, self.time, self.arm, self.place, self.vector
        flags = self.settled, self.is_cancelled, self.expired, self.dropped
        return (*first, {**self.seen}, self.lost, [*self.rewards], self.paid, {**self.revealed}, flags)

    @classmethod
    def filled(cls, content: Sequence[Any]) -> "PendingDecision":
        """Restore a decision from what `content` returned."""
        pending = cls(*content[:9])
        pending.rewards, pending.paid, pending.revealed = content[9:12]
        pending.settled, pending.is_cancelled, pending.expired, pending.dropped = content[12]
        return pending


class Windows:
    """The open decisions by id, oldest first, and what each still waits for."""

    def __init__(self, reward_window: float | None, context_window: float | None) -> None:
        """Start without decisions; None means that a window has no end."""
        self._reward_window, self._context_window = reward_window, context_window
        self.open: dict[str, PendingDecision] = {}  # all of them
        # Ordered dictionaries, whose first entry is found fast even after many were removed.
        self._awaiting_reward = OrderedDict[str, None]()  # only if the reward window has an end
        self._awaiting_context = OrderedDict[str, None]()  # only if an agent learns from contexts
        self.overdue: dict[str, None] = {}  # their reward awaits a context that is too late by now
        self._recent: dict[str, list[str]] = {}  # by unit, for agents that learn from a round again later

    def enter(self, pending: PendingDecision, hidden: bool, again: bool) -> None:
        """Add a decision; `hidden`: an agent learns from its true context, `again`: one learns twice."""
        self.open[pending.id] = pending
        if self._reward_window is not None:
            self._awaiting_reward[pending.id] = None
        if hidden:
            self._awaiting_context[pending.id] = None
        if again:
            self._recent.setdefault(pending.unit, []).append(pending.id)

    def settle(self, pending: PendingDecision) -> None:
        """Stop waiting for its reward."""
        pending.settled = True
        self._awaiting_reward.pop(pending.id, None)

    def is_hidden(self, pending: PendingDecision) -> bool:
        """Whether its true context may still come, and an agent learns from it."""
        return pending.id in self._awaiting_context

    def unpaid(self, time: float) -> Iterator[PendingDecision]:
        """The decisions whose reward window is over at this time."""
        return self._past_due(self._awaiting_reward, self._reward_window, time)

    def unseen(self, time: float) -> Iterator[PendingDecision]:
        """The decisions whose true context would be too late at this time."""
        return self._past_due(self._awaiting_context, self._context_window, time)

    def _past_due(
        self, names: OrderedDict[str, None], span: float | None, time: float
    ) -> Iterator[PendingDecision]:
        for name in names:
            if span is None or self.open[name].time + span > time:
                return
            yield self.open[name]

    def shut(self, pending: PendingDecision) -> None:
        """Stop waiting for its true context."""
        del self._awaiting_context[pending.id]

    def before(self, unit: str, rounds: int) -> PendingDecision | None:
        """The decision of a unit `rounds` before its last one, if it is still open."""
        recent = self._recent.get(unit, ())
        return self.open.get(recent[-1 - rounds]) if len(recent) > rounds else None

    def forget(self, unit: str, rounds: int) -> list[PendingDecision]:
        """Forget decisions of a unit that are `rounds` ago or more, and return those that are open."""
        recent = self._recent.get(unit, [])
        forgotten = [recent.pop(0) for _ in range(len(recent) - rounds)]
        return [self.open[name] for name in forgotten if name in self.open]

    def is_recent(self, pending: PendingDecision) -> bool:
        """Whether an agent will learn from it again."""
        return pending.id in self._recent.get(pending.unit, ())

    def close(self, pending: PendingDecision) -> None:
        """Remove a decision that nothing can change any more."""
        for names in (self.open, self._awaiting_context, self.overdue):
            names.pop(pending.id, None)

    def content(self) -> dict[str, Any]:
        """The content as nested values, copied where they change later."""
        return {
            "open": [pending.content() for pending in self.open.values()],
            "waiting": list(self._awaiting_reward),
            "hidden": list(self._awaiting_context),
            "overdue": list(self.overdue),
            "recent": {unit: [*names] for unit, names in self._recent.items()},
        }

    def fill(self, content: dict[str, Any]) -> None:
        """Restore what `content` returned."""
        self.open = {fields[0]: PendingDecision.filled(fields) for fields in content["open"]}
        self._awaiting_reward, self._awaiting_context = (
            OrderedDict.fromkeys(content[name]) for name in ("waiting", "hidden")
        )
        self.overdue, self._recent = dict.fromkeys(content["overdue"]), content["recent"]


class Past:
    """A closed decision, from its rows in the log."""

    def __init__(self, decision: str, rows: Sequence[Row]) -> None:
        """Raise DecisionClosedError if it was erased."""
        self.bodies = [(row.kind, json.loads(row.body)) for row in rows]
        self.time = next(row.time for row in rows if row.kind == "decide")
        self.decided = next(body for kind, body in self.bodies if kind == "decide")
        if self.decided.get("erased"):
            raise DecisionClosedError("decision", repr(decision), "a decision that was not erased")

    @property
    def is_cancelled(self) -> bool:
        """Whether it was never shown."""
        return any(kind == "cancel" for kind, _ in self.bodies)

    @property
    def paid(self) -> float | None:
        """The reward that was learnt, if any."""
        for kind, body in self.bodies:
            if kind == "reward" and body["outcome"] in ("learnt", "waits"):
                return float(body["value"])
            if kind == "expire" and body["expired"] == "reward" and body["value"] is not None:
                return float(body["value"])
        return None

    @property
    def expired(self) -> bool:
        """Whether its reward window is over."""
        return any(kind == "expire" and body["expired"] == "reward" for kind, body in self.bodies)

    @property
    def revealed(self) -> dict[str, float]:
        """The revealed coordinates of the true context."""
        context: dict[str, float] = {}
        for kind, body in self.bodies:
            if kind == "reveal" and body["outcome"] in ("learnt", "noted"):
                context |= body["context"]
        return context
