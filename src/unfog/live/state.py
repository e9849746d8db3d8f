"""The state of a live problem: a fold of its events.

Nothing here looks at a clock or a file. Every change is an event, and `apply` is how an event changes the
state: when it happens, and again when the log is read from its beginning. So what is believed is what the log
says. A decision is made by `decide`, which asks the agents; a replay takes the arm that the log has.

    decide   the channel learns from the noisy context; the decision is open
    reward   learnt at once, or kept until the wait is over; late, it is only counted
    reveal   a true context, whole or in part: to the agents that learn from it
    void     was never shown: nothing is learnt
    expire   the wait is over: what was kept, or the default, is learnt; or a reward that awaited its true
             context is dropped
    arms     added, retired, brought back        freeze   from now on one arm        shadow   one more agent
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from unfog.agents import predict
from unfog.agents.round import Denoised, Memory, Offer
from unfog.features import FeatureMap
from unfog.live.arms import Arms
from unfog.live.asking import REQUEST, Ask, read
from unfog.live.made import Made
from unfog.live.mind import Mind
from unfog.live.minds import OBEYED, Minds
from unfog.live.opened import Open, combined
from unfog.live.reference import refuse_changed
from unfog.live.watch import Watch
from unfog.live.windows import Windows
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Belief
from unfog.maths.random import generator

SHADOW = ("arm", "probability", "shares")  # what is logged of a shadow's choice


class State:
    """All that is remembered of a problem."""

    def __init__(self, made: Made) -> None:
        """Before the first decision."""
        self.made, self.terms = made, made.terms
        self.arms = Arms(made)
        self.minds = Minds(made, self.arms.features)
        self.windows = Windows(made.terms.wait, made.terms.reveal_within)
        self.floor = generator(made.terms.seed, 0, "floor")
        self.number = 0  # of the next decision
        self.watch = Watch(made, expects=self.mind.agent.expects is not None)
        self._erased = set[str]()  # no event of theirs is counted; none comes after what a snapshot has
        self.unwritten = False  # whether something has changed, or begun to, that is not in the log yet

    @property
    def mind(self) -> Mind:
        """The one that is obeyed."""
        return self.minds.obeyed

    @property
    def open(self) -> dict[str, Open]:
        """Decisions that may still change something, oldest first."""
        return self.windows.open

    def id_of(self, number: int) -> str:
        """The name of a decision."""
        return f"{number}-{self.terms.uid[:8]}"

    def offer(self, ask: Ask) -> Offer:
        """What a round is offered."""
        at = None if ask.at is None else np.asarray([ask.at])
        mask = self.arms.mask(ask)
        return Offer(ask.noisy, ask.mask, time=np.asarray(self.number), arms=mask, at=at, noise=ask.noise)

    def decide(self, ask: Ask, time: float) -> dict[str, Any]:
        """Decide: the body of the event, which has been applied."""
        self.unwritten = True
        self._again(ask.unit)
        told = ask.unit, self.offer(ask), self.arms.features_of(ask.vectors), self.number
        drawn, choices = self._drawn(), self.minds.choose(*told)
        chosen = {name: self.arms.mixed(ask, one.place, one.shares, drawn) for name, one in choices.items()}
        body = {"number": self.number, **ask.request, **self.arms.obeyed(ask, chosen[OBEYED])}
        body |= self._believed(choices[OBEYED].denoised)
        if len(chosen) > 1:
            others = (name for name in chosen if name != OBEYED)
            body["shadow"] = {name: {part: chosen[name][part] for part in SHADOW} for name in others}
        self._enter(ask, body["arm"], {name: one.denoised for name, one in choices.items()}, time)
        return body

    def _drawn(self) -> Array | None:
        """Two uniform numbers, for all agents: whether any arm is taken, and which."""
        return self.floor.random(2) if self.terms.floor else None

    def _believed(self, denoised: Denoised) -> dict[str, Any]:
        """The context as it is believed to be, in the caller's units."""
        units, names, (mean, cov) = self.made.units, self.terms.context, denoised.context
        one = cov if cov.ndim == 2 else cov[0]
        sd, mean = np.sqrt(one.diagonal()) * units.scale, units.outside(mean[0])
        return {
            "denoised": dict(zip(names, mean.tolist(), strict=True)),
            "sd": dict(zip(names, sd.tolist(), strict=True)),
        }

    def _enter(self, ask: Ask, arm: str, kept: dict[str, Denoised], time: float) -> None:
        """A decision becomes open, and the channels learn from its noisy context."""
        noisy = ask.noisy if ask.mask is None else np.where(ask.mask > 0, ask.noisy, np.nan)
        self.watch.decided(self.arms.place.get(arm, 0), noisy, self.mind.foreseen(kept[OBEYED]))
        self.watch.dated(time)
        self.watch.believed(self.number, time, ask.unit, partial(self.mind.bias_then, kept[OBEYED]))
        seen = self.minds.observe(ask.unit, kept)
        vector = None if ask.vectors is None else ask.vectors[arm]
        place = self.arms.place[arm] if vector is None else 0
        name = self.id_of(self.number)
        lost = () if ask.mask is None else tuple(np.flatnonzero(ask.mask[0] == 0).tolist())
        found = Open(name, self.number, ask.unit, time, arm, place, vector, seen, lost)
        self.windows.enter(found, hidden=self.minds.use_contexts, again=self.minds.lag > 0)
        self.number += 1

    def _again(self, unit: str) -> None:
        """Before a unit's next reading: its decision of so many rounds ago is learnt from again."""
        longest = self.minds.lag
        if not longest:
            return
        for name, mind in self.minds.items():
            lag = 0 if mind.agent.revisits is None else mind.agent.revisits[0].lag
            past = self.windows.before(unit, lag) if lag else None
            if past is not None:
                self.minds.revisit(name, past, self.arms.features_of(past.brought))
        for gone in self.windows.forget(unit, longest):
            self._close_if_done(gone)

    def apply(self, kind: str, decision: str | None, body: Mapping[str, Any], time: float) -> None:
        """An event of the log."""
        self.unwritten = True
        self.close_past(time)
        if kind == "decide":
            self._follow(body, time)
        elif kind in ABOUT_DECISIONS:
            self._about(kind, decision or "", body)
        elif kind == "arms":
            self._arms(body)
        elif kind == "freeze":
            self.arms.frozen = body["arm"]
        elif kind == "shadow":
            self._shadow(body)

    def _about(self, kind: str, decision: str, body: Mapping[str, Any]) -> None:
        """An event of one decision, which may be closed by now, or erased."""
        if decision in self._erased:
            return
        self.watch.counted(kind, body)
        found = self.open.get(decision)
        if found is not None:
            ABOUT_DECISIONS[kind](self, found, body)
            self._close_if_done(found)
        elif kind == "reveal" and "then" in body:
            self.watch.looked_back(body)
        elif kind == "void" and body["outcome"] == "void":  # none but those that expired can become void now
            self.watch.happened("expired", -1)

    def _follow(self, body: Mapping[str, Any], time: float) -> None:
        """A decision of the log: its arm is known. Of an erased one only its random numbers are left."""
        self._drawn()
        if body.get("erased"):
            self.minds.skip()
            self._erased.add(self.id_of(self.number))
            self.number += 1
            return
        ask = read(self.made, {name: body[name] for name in REQUEST if name in body})
        self._again(ask.unit)
        features = self.arms.features_of(ask.vectors)
        self._enter(ask, body["arm"], self.minds.denoise(ask.unit, self.offer(ask), features), time)

    def _reward(self, found: Open, body: Mapping[str, Any]) -> None:
        if body["outcome"] == "kept":
            found.rewards.append(body["value"])
        elif body["outcome"] in ("learnt", "waits"):
            self._learn(found, body["value"])
            self.watch.happened("answered")

    def _learn(self, found: Open, value: float) -> None:
        """All agents learn from a reward, or keep it for the true context it awaits."""
        law = self.minds.reward(found, self.arms.features_of(found.brought), value)
        found.paid = value
        self.windows.settle(found)
        if not self.minds.awaits(found):
            self.watch.rewarded(self.arms.place.get(found.arm, 0), value, law)
        elif not self.windows.is_hidden(found):
            self.windows.overdue[found.id] = None

    def _reveal(self, found: Open, body: Mapping[str, Any]) -> None:
        if body["outcome"] not in ("learnt", "noted") or "context" not in body:
            return
        news = {name: x for name, x in body["context"].items() if name not in found.shown}
        found.shown |= news
        self.watch.held_against(found, found.seen[OBEYED], news)
        features, waited = self.arms.features_of(found.brought), self.minds.awaits(found)
        before = (self.mind.memory(found.unit), self.mind.theta()) if waited else None
        self.minds.reveal(found, features, self.made.whole(found.shown))
        if before is not None and not self.minds.awaits(found):
            self._paired(found, features, *before)

    def _paired(self, found: Open, features: FeatureMap, memory: Memory, theta: Belief) -> None:
        """A reward was learnt with its true context: it is held against what was believed of theta before."""
        mind, seen, value = self.mind, found.seen[OBEYED], found.paid
        decision = mind.decision(seen._replace(belief=theta), found.place, features)
        law = predict.reward(mind.agent, mind.setup, memory, decision)
        if value is not None:
            self.watch.rewarded(self.arms.place.get(found.arm, 0), value, law)

    def _void(self, found: Open, body: Mapping[str, Any]) -> None:  # noqa: ARG002
        if found.expired or found.paid is not None:
            self.watch.happened("answered" if found.rewards or not found.expired else "expired", -1)
        found.voided = True
        self.windows.settle(found)

    def _expire(self, found: Open, body: Mapping[str, Any]) -> None:
        if body["what"] == "context":
            found.dropped = True
            return
        if body["value"] is not None:
            self._learn(found, body["value"])
        self.watch.happened("answered" if found.rewards else "expired")
        found.expired = True
        self.windows.settle(found)

    def due(self, time: float) -> list[tuple[str, dict[str, Any]]]:
        """The expiries that are due, oldest first."""
        terms, late = self.terms, [self.open[name] for name in self.windows.overdue]
        found: list[tuple[str, dict[str, Any]]] = []
        for one in self.windows.unpaid(time):
            value = combined(terms.combine, one.rewards) if one.rewards else terms.default_reward
            found.append((one.id, {"what": "reward", "value": value}))
        late += self.windows.unseen(time)
        return found + [(one.id, {"what": "context"}) for one in late if self.minds.awaits(one)]

    def close_past(self, time: float) -> None:
        """True contexts that did not come are too late by now: decisions that are settled are let go."""
        for found in list(self.windows.unseen(time)):
            self.windows.shut(found)
            if self.minds.awaits(found):
                self.windows.overdue[found.id] = None
            self._close_if_done(found)

    def _close_if_done(self, found: Open) -> None:
        """Let go of what nothing can change any more."""
        known = len(found.shown) == len(self.terms.context)
        shown = known or not self.windows.is_hidden(found)
        over = found.voided or (shown and not self.windows.is_recent(found))
        if found.settled and over and not self.minds.awaits(found):
            self.windows.close(found)

    def _shadow(self, body: Mapping[str, Any]) -> None:
        """A shadow joins, or leaves."""
        if body.get("leaves"):
            self.minds.leave(body["agent"], self.open.values())
            return
        refuse_changed("shadow", body["agent"], body.get("fingerprint"))
        self.minds.join(body["agent"], self.arms.features)

    def refuse_arms(self, body: Mapping[str, Any]) -> None:
        """Complain of a change of arms that cannot be, or of more than there is memory for."""
        self.arms.refuse(body)
        if body.get("add"):
            features = self.arms.with_added(body["add"])
            for mind in self.minds.values() if features.size > self.arms.features.size else ():
                self.made.refuse_large("add", mind.agent, features)
            self.made.knowledge(features)

    def _arms(self, body: Mapping[str, Any]) -> None:
        """Arms come, go and come back."""
        before = self.made.knowledge(self.arms.features)
        self.arms.change(body, self.number)
        after = self.made.knowledge(self.arms.features)
        self.minds.grow(before, after, self.open.values())


ABOUT_DECISIONS = {
    "reward": State._reward,
    "reveal": State._reveal,
    "void": State._void,
    "expire": State._expire,
}
