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
from typing import Any

import numpy as np

from unfog.agents.round import Denoised, Offer
from unfog.inputs import InputError
from unfog.live.arms import Arms
from unfog.live.asking import Ask, read
from unfog.live.made import Made
from unfog.live.mind import Mind, Seen
from unfog.live.opened import Open, combined
from unfog.live.reference import refuse_changed
from unfog.live.watch import Watch
from unfog.maths.arrays import Array
from unfog.maths.streams import generator

OBEYED = ""  # the name under which the agent stands whose arms are taken; the others are its shadows


class State:
    """All that is remembered of a problem."""

    def __init__(self, made: Made) -> None:
        """Before the first decision."""
        self.made, self.terms = made, made.terms
        self.arms = Arms(made)
        self.minds: dict[str, Mind] = {}  # by name; the one that is obeyed first
        self.join(OBEYED, made.terms.agent)
        self.floor = generator(made.terms.seed, 0, "floor")
        self.number = 0  # of the next decision
        self.open: dict[str, Open] = {}  # decisions that may still change something, oldest first
        self.waiting: dict[str, None] = {}  # those whose reward may come, where there is an end to that
        self.hidden: dict[str, None] = {}  # those whose true context may come, where an agent learns from it
        self.overdue: dict[str, None] = {}  # those whose reward awaits a context that is too late
        self.recent: dict[str, list[str]] = {}  # of each unit, for agents that learn from a round again
        self._drawn = np.zeros(2)
        sizes = len(made.terms.context), len(made.terms.arms)
        binary = made.terms.rewards == "bernoulli"
        self.watch = Watch(*sizes, expects=self.mind.agent.expects is not None, binary=binary)
        self.unwritten = False  # whether something has changed, or begun to, that is not in the log yet

    @property
    def mind(self) -> Mind:
        """The one that is obeyed."""
        return self.minds[OBEYED]

    @property
    def uses_contexts(self) -> bool:
        """Whether some agent learns from true contexts."""
        return any(mind.agent.sees_context for mind in self.minds.values())

    def join(self, name: str, agent: str) -> None:
        """One more agent, from now on."""
        found = (
            self.made.agent if name == OBEYED else self.made.agent_named("shadow", agent, self.arms.features)
        )
        known = self.made.knowledge(self.arms.features)
        self.minds[name] = Mind(found, known, self.terms.seed)

    def id_of(self, number: int) -> str:
        """The name of a decision."""
        return f"{number}-{self.terms.uid[:8]}"

    def decide(self, ask: Ask, time: float) -> dict[str, Any]:
        """Decide: the body of the event, which has been applied."""
        self.unwritten = True
        self._again(ask.unit)
        offer, features = self.offer(ask), self.arms.features_of(ask.vectors)
        number, body = self.number, {"number": self.number, **ask.request}
        kept: dict[str, Denoised] = {}
        shadows: dict[str, Any] = {}
        for name, mind in self.minds.items():
            normals = mind.advance()
            considered = mind.consider(ask.unit, offer, features)
            place, shares = mind.choose(considered, normals, number)
            view = considered.view
            belief = None if mind.agent.looks_back is None else view.belief
            kept[name] = Denoised(considered.reading, view.context, belief)
            chosen = self.arms.mixed(ask, place, shares, self._floor(name))
            if name == OBEYED:
                body |= self.arms.obeyed(ask, chosen)
                body |= self._believed(kept[name])
            else:
                shadows[name] = {part: chosen[part] for part in ("arm", "probability", "shares")}
        if shadows:
            body["shadow"] = shadows
        self._enter(ask, body, kept, time)
        return body

    def _floor(self, name: str) -> Array | None:
        """Two uniform numbers: whether any arm is taken, and which; shadows take part in the same draw."""
        if self.terms.floor == 0:
            return None
        if name == OBEYED:
            self._drawn = self.floor.random(2)
        return self._drawn

    def _believed(self, denoised: Denoised) -> dict[str, Any]:
        """The context as it is believed to be, in the caller's units."""
        units, names, (mean, cov) = self.made.units, self.terms.context, denoised.context
        one = cov if cov.ndim == 2 else cov[0]
        sd, mean = np.sqrt(one.diagonal()) * units.scale, units.outside(mean[0])
        return {
            "denoised": dict(zip(names, mean.tolist(), strict=True)),
            "sd": dict(zip(names, sd.tolist(), strict=True)),
        }

    def offer(self, ask: Ask) -> Offer:
        """What a round is offered."""
        at = None if ask.at is None else np.asarray([ask.at])
        mask = self.arms.mask(ask)
        return Offer(ask.noisy, ask.mask, time=np.asarray(self.number), arms=mask, at=at, noise=ask.noise)

    def _enter(self, ask: Ask, body: Mapping[str, Any], kept: dict[str, Denoised], time: float) -> None:
        """A decision becomes open, and the channels learn from its noisy context."""
        law = self.mind.foreseen(kept[OBEYED])
        noisy = ask.noisy if ask.mask is None else np.where(ask.mask > 0, ask.noisy, np.nan)
        self.watch.decided(self.arms.place.get(body["arm"], 0), noisy, law)
        seen = {name: self.minds[name].observe(ask.unit, denoised) for name, denoised in kept.items()}
        name = self.id_of(self.number)
        vector = None if ask.vectors is None else ask.vectors[body["arm"]]
        place = self.arms.place[body["arm"]] if vector is None else 0
        self.open[name] = Open(name, self.number, ask.unit, time, body["arm"], place, vector, seen)
        self.number += 1
        if self.terms.wait is not None:
            self.waiting[name] = None
        if self.uses_contexts:
            self.hidden[name] = None
        if self._lag:
            self.recent.setdefault(ask.unit, []).append(name)

    @property
    def _lag(self) -> int:
        """How many rounds later a round is learnt from again, at most; 0: never."""
        lags = [mind.agent.revisits[0].lag for mind in self.minds.values() if mind.agent.revisits]
        return max(lags, default=0)

    def _again(self, unit: str) -> None:
        """Before a unit's next reading: its decision of so many rounds ago is learnt from again."""
        longest, recent = self._lag, self.recent.get(unit, [])
        for name, mind in self.minds.items():
            if mind.agent.revisits is None or len(recent) <= mind.agent.revisits[0].lag:
                continue
            found = self.open.get(recent[-1 - mind.agent.revisits[0].lag])
            if found is not None and name in found.seen and not found.voided:
                features = self.arms.features_of(found.brought)
                found.seen[name] = mind.revisit(unit, found.seen[name], found.place, features)
        while longest and len(recent) > longest:
            found = self.open.get(recent.pop(0))
            if found is not None:
                self._close_if_done(found)

    def apply(self, kind: str, decision: str | None, body: Mapping[str, Any], time: float) -> None:
        """An event of the log."""
        self.unwritten = True
        self.close_past(time)
        self.watch.counted(kind, body)
        if kind == "decide":
            self._follow(body, time)
        elif kind in ABOUT_DECISIONS:
            found = self.open.get(decision or "")
            if found is None and kind == "reveal" and "then" in body:
                self._looked_back(body)
            if found is not None:
                ABOUT_DECISIONS[kind](self, found, body)
                self._close_if_done(found)
        elif kind == "arms":
            self._arms(body)
        elif kind == "freeze":
            self.arms.frozen = body["arm"]
        elif kind == "shadow":
            refuse_changed("shadow", body["agent"], body.get("fingerprint"))
            self.join(body["agent"], body["agent"])

    def _follow(self, body: Mapping[str, Any], time: float) -> None:
        """A decision of the log: its arm is known."""
        if body.get("erased"):
            self._pass()
            return
        ask = read(self.made, {name: body[name] for name in REQUEST if name in body})
        self._again(ask.unit)
        offer, features = self.offer(ask), self.arms.features_of(ask.vectors)
        kept = {}
        for name, mind in self.minds.items():
            mind.advance()
            self._floor(name)
            kept[name] = mind.denoise(ask.unit, offer, features)
        self._enter(ask, body, kept, time)

    def _pass(self) -> None:
        """A decision of which nothing is left but that it was made: its random numbers are drawn."""
        for name, mind in self.minds.items():
            mind.advance()
            self._floor(name)
        self.number += 1

    def _reward(self, found: Open, body: Mapping[str, Any]) -> None:
        if body["outcome"] == "kept":
            found.rewards.append(body["value"])
        elif body["outcome"] in ("learnt", "waits"):
            self._learn(found, body["value"])

    def _learn(self, found: Open, value: float) -> None:
        """All agents learn from a reward, or keep it for the true context it awaits."""
        features = self.arms.features_of(found.brought)
        for name, seen in found.seen.items():
            mind = self.minds[name]
            found.seen[name], law = mind.reward(found.unit, seen, found.place, features, value)
            if name == OBEYED:
                self.watch.rewarded(self.arms.place.get(found.arm, 0), value, law)
        found.paid, found.settled = value, True
        self.waiting.pop(found.id, None)
        if self.awaits(found) and found.id not in self.hidden:
            self.overdue[found.id] = None  # its true context can come no more

    def _reveal(self, found: Open, body: Mapping[str, Any]) -> None:
        if body["outcome"] not in ("learnt", "noted") or "context" not in body:
            return
        news = {name: x for name, x in body["context"].items() if name not in found.shown}
        found.shown |= news
        self._held_against(found.seen[OBEYED], self.whole(news))
        whole = self.whole(found.shown)
        features = self.arms.features_of(found.brought)
        for name, seen in found.seen.items():
            mind = self.minds[name]
            if mind.agent.revises is not None or (mind.agent.awaits_context and not np.isnan(whole).any()):
                found.seen[name] = mind.reveal(found.unit, seen, found.place, features, whole)

    def _looked_back(self, body: Mapping[str, Any]) -> None:
        """A true context of a decision that is closed: nothing is learnt, but what was believed is judged."""
        units, then, names = self.made.units, body["then"], self.terms.context
        mean = units.inside(np.array([then["denoised"][name] for name in names]))
        sd = np.array([then["sd"][name] for name in names]) / units.scale
        noisy = np.array([np.nan if then["noisy"][name] is None else then["noisy"][name] for name in names])
        self.watch.revealed(units.read(noisy), mean, sd**2, self.whole(body["context"])[0])

    def _held_against(self, seen: Seen, true: Array) -> None:
        """What was read and believed, against what is true."""
        mean, cov = seen.context
        variance = np.diagonal(np.broadcast_to(cov, (1, *cov.shape[-2:])), axis1=-2, axis2=-1)
        self.watch.revealed(seen.noisy[0], mean[0], variance[0], true[0])

    def whole(self, shown: Mapping[str, float]) -> Array:
        """A true context in the agents' units, (1, d): not a number where it is not known."""
        raw = np.array([[shown.get(name, np.nan) for name in self.terms.context]])
        return self.made.units.inside(raw)

    def _void(self, found: Open, body: Mapping[str, Any]) -> None:  # noqa: ARG002
        found.voided = found.settled = True
        self.waiting.pop(found.id, None)

    def _expire(self, found: Open, body: Mapping[str, Any]) -> None:
        if body["what"] == "context":
            found.dropped = True
            return
        if body["value"] is not None:
            self._learn(found, body["value"])
        found.settled, found.expired = True, True
        self.waiting.pop(found.id, None)

    def due(self, time: float) -> list[tuple[str, dict[str, Any]]]:
        """The expiries that are due, oldest first."""
        terms, found = self.terms, []
        for name in self.waiting:
            opened = self.open[name]
            if terms.wait is None or opened.time + terms.wait > time:
                break
            value = combined(terms.combine, opened.rewards) if opened.rewards else terms.default_reward
            found.append((name, {"what": "reward", "value": value}))
        names, within = [*self.overdue], terms.reveal_within
        for name in self.hidden:
            if within is None or self.open[name].time + within > time:
                break
            names.append(name)
        return found + [(name, {"what": "context"}) for name in names if self.awaits(self.open[name])]

    def awaits_context(self, found: Open) -> bool:
        """Whether a reward would have to be kept until the true context is known."""
        return self.mind.agent.awaits_context and found.seen[OBEYED].known is None

    def refuse_unit(self, unit: str) -> None:
        """Some learners denoise past rounds with one bias for all."""
        first = next(iter(self.mind.channels), unit)
        for mind in self.minds.values():
            if unit != first and mind.agent.looks_back is not None:
                allowed = f"one unit: the learner of {mind.agent.name!r} denoises past rounds with one bias"
                raise InputError("unit", repr(unit), allowed)

    def refuse_noise(self, ask: Ask) -> None:
        """To most denoisers all readings are alike."""
        for mind in self.minds.values():
            if ask.noise is not None and mind.agent.timed is None:
                allowed = f"none: to the denoiser of {mind.agent.name!r} all readings are alike"
                raise InputError("noise", "given for one reading", allowed)

    def awaits(self, found: Open) -> bool:
        """Whether a reward is kept that cannot be learnt from before the true context is known."""
        seen = found.seen.get(OBEYED)
        waits = self.mind.agent.awaits_context and not found.dropped and not found.voided
        return waits and seen is not None and seen.reward is not None and seen.known is None

    def close_past(self, time: float) -> None:
        """True contexts that did not come are too late by now: decisions that are settled are let go."""
        within = self.terms.reveal_within
        while within is not None and self.hidden:
            name = next(iter(self.hidden))
            found = self.open[name]
            if found.time + within > time:
                return
            del self.hidden[name]
            if self.awaits(found):
                self.overdue[name] = None
            self._close_if_done(found)

    def _close_if_done(self, found: Open) -> None:
        """Let go of what nothing can change any more."""
        known = len(found.shown) == len(self.terms.context)
        hidden = found.id in self.hidden and not known and not found.voided
        again = found.id in self.recent.get(found.unit, ()) and not found.voided
        if found.settled and not hidden and not again and not self.awaits(found):
            for names in (self.open, self.hidden, self.overdue):
                names.pop(found.id, None)

    def _arms(self, body: Mapping[str, Any]) -> None:
        """Arms come, go and come back."""
        before = self.made.knowledge(self.arms.features)
        self.arms.change(body, self.number)
        after = self.made.knowledge(self.arms.features)
        for name, mind in self.minds.items():
            mind.grow(before, after)
            for found in self.open.values():
                if name in found.seen:
                    found.seen[name] = mind.grown(found.seen[name])


ABOUT_DECISIONS = {
    "reward": State._reward,
    "reveal": State._reveal,
    "void": State._void,
    "expire": State._expire,
}
REQUEST = ("context", "unit", "arms", "at", "noise", "forced", "given")
