"""The state of a live problem: a fold of its events, by the agent in charge and its shadows.

Nothing here reads a clock or a file. Every change is an event, and `State.apply` is how an event changes the
state: when it happens, and again when the log is read from its beginning. So the beliefs are what the log
says. A decision is made by `State.decide`, which asks the agents; a replay takes the arm from the log.

    decide   the channel learns from the noisy context; the decision is open
    reward   learnt at once, or kept until the wait is over; if it is late, it is only counted
    reveal   a true context, whole or in part, for the agents that learn from it
    void     the decision was never shown: nothing is learnt
    expire   the wait is over: the kept rewards or the default are learnt; or a reward that awaited its true
             context is dropped
    arms     added, retired, brought back        freeze   from now on one arm        shadow   one more agent

`Runners` holds the agents, each in a runner (agents/runner.py): the one whose arms are taken, and its
shadows, which see and learn the same.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from unfog.agents import predict
from unfog.agents.base import Moment
from unfog.agents.grow import grown
from unfog.agents.round import Denoised, Memory, Offer
from unfog.agents.runner import Law, Runner
from unfog.channel.knowledge import Knowledge
from unfog.features import FeatureMap
from unfog.live.arms import Arms
from unfog.live.config import Made, refuse_changed
from unfog.live.monitoring import Watch
from unfog.live.pending import CompactDecision, Open, Windows
from unfog.live.requests import REQUEST, Ask, read
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Belief
from unfog.maths.random import generator
from unfog.validation import InputError

OBEYED = ""  # the name under which the agent stands whose arms are taken
SHADOW = ("arm", "probability", "shares")  # what is logged of a shadow's choice


class Choice(NamedTuple):
    """What one agent would do."""

    denoised: Denoised
    place: int  # of the arm
    shares: Array  # (K,)  with which probability it takes each


class Runners(Mapping[str, Runner]):
    """The agents of a problem by name; the one that is obeyed first."""

    def __init__(self, made: Made, features: FeatureMap) -> None:
        """The problem's own agent."""
        self._made = made
        self._found = {OBEYED: Runner(made.agent, made.knowledge(features), made.terms.seed)}

    def __getitem__(self, name: str) -> Runner:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    @property
    def obeyed(self) -> Runner:
        """The one whose arms are taken."""
        return self._found[OBEYED]

    def join(self, agent: str, features: FeatureMap) -> None:
        """One more shadow, from now on."""
        found = self._made.agent_named("shadow", agent, features)
        self._found[agent] = Runner(found, self._made.knowledge(features), self._made.terms.seed)

    def leave(self, agent: str, opened: Iterable[Open]) -> None:
        """A shadow decides no more, and what it kept of open decisions goes with it."""
        del self._found[agent]
        for found in opened:
            found.seen.pop(agent, None)

    @property
    def use_contexts(self) -> bool:
        """Whether one of them learns from true contexts."""
        return any(runner.agent.sees_context for runner in self._found.values())

    @property
    def lag(self) -> int:
        """How many rounds later a round is learnt from again, at most; 0: never."""
        return max(runner.lag for runner in self._found.values())

    def refuse(self, unit: str, moment: Moment) -> None:
        """Complain of a unit, a time or a noise that the one that is obeyed can make nothing of."""
        _refuse(self.obeyed, unit, moment)

    def refuse_together(self, field: str, asks: Sequence[Ask], number: int) -> None:
        """Complain of requests that the one that is obeyed cannot follow one after the other.

        The first will be the decision of this number. Each by itself is sound.
        """
        agent, last = self.obeyed.agent, dict[str, float]()
        for i, ask in enumerate(asks):
            if agent.can.look_back is not None and ask.unit != asks[0].unit:
                raise InputError(f"{field}[{i}].unit", repr(ask.unit), "one unit, for this agent")
            now = float(number + i) if ask.at is None else ask.at
            if agent.can.use_time is not None and now < last.get(ask.unit, now):
                before = last[ask.unit]
                raise InputError(f"{field}[{i}].at", f"{now} after {before}", "times that never go back")
            last[ask.unit] = now

    def choose(self, unit: str, offer: Offer, features: FeatureMap, number: int) -> dict[str, Choice]:
        """Everyone's choice in the decision of this number."""
        found = {}
        for name, runner in self._present(unit, offer):
            normals = runner.draw()
            considered = runner.consider(unit, offer, features)
            view = considered.view
            belief = None if runner.agent.can.look_back is None else view.belief
            denoised = Denoised(considered.reading, view.context, belief)
            found[name] = Choice(denoised, *runner.choose(considered, normals, number))
        return found

    def denoise(self, unit: str, offer: Offer, features: FeatureMap) -> dict[str, Denoised]:
        """What everyone makes of a reading, for a decision whose arm is known; random numbers are drawn."""
        found = {}
        for name, runner in self._present(unit, offer):
            runner.draw()
            found[name] = runner.denoise(unit, offer, features)
        return found

    def _present(self, unit: str, offer: Offer) -> Iterator[tuple[str, Runner]]:
        """The one that is obeyed, and those shadows that can make something of this reading.

        A shadow that cannot sits the decision out: it must never stop the others.
        """
        for name, runner in self._found.items():
            try:
                if name != OBEYED:
                    _refuse(runner, unit, Moment(offer.time, offer.at, offer.noise))
            except InputError:
                continue
            yield name, runner

    def skip(self) -> None:
        """Draw the random numbers of a decision that is not made."""
        for runner in self._found.values():
            runner.draw()

    def observe(self, unit: str, kept: Mapping[str, Denoised]) -> dict[str, CompactDecision]:
        """The channels learn from a reading; what everyone keeps of it."""
        for name, denoised in kept.items():
            self._found[name].observe(unit, denoised)
        return {name: CompactDecision.of(denoised) for name, denoised in kept.items()}

    def reward(self, found: Open, features: FeatureMap, value: float) -> Law | None:
        """Everyone learns from a reward, or keeps it for the true context it awaits.

        What the one that is obeyed had expected of it.
        """
        expected = None
        for name, seen in found.seen.items():
            runner = self._found[name]
            decision = seen.whole(runner, found.place, features)
            law = None
            if runner.agent.limit is None or runner.agent.learner.rewards != "gaussian":
                decision = decision._replace(evidence=decision.evidence.weighed())
                law = predict.reward(runner.agent, runner.setup, runner.memory(found.unit), decision)
            decision = runner.reward(found.unit, decision, value)
            found.seen[name] = seen.after(decision)
            if name == OBEYED:
                expected = decision.law or law  # a round that bounds rewards says what it had expected
        return expected

    def reveal(self, found: Open, features: FeatureMap, context: Array) -> None:
        """A true context (1, d), not a number where it is not known, to those who learn from such."""
        whole = not np.isnan(context).any()
        for name, seen in found.seen.items():
            runner = self._found[name]
            if runner.agent.can.revise is not None or (runner.agent.awaits_context and whole):
                decision = seen.whole(runner, found.place, features)
                found.seen[name] = seen.after(runner.reveal(found.unit, decision, context))

    def revisit(self, name: str, found: Open, features: FeatureMap) -> None:
        """One of them learns from a past decision again."""
        if name in found.seen and not found.voided:
            seen, runner = found.seen[name], self._found[name]
            decision = seen.whole(runner, found.place, features)
            found.seen[name] = seen.after(runner.revisit(found.unit, decision))

    def grow(self, before: Knowledge, after: Knowledge, opened: Iterable[Open]) -> None:
        """Arms came: there is more to believe of theta, also with decisions that are still open."""
        for name, runner in self._found.items():
            runner.grow(before, after)
            for found in opened:
                if name in found.seen:
                    found.seen[name] = found.seen[name].grown(after)

    def awaits_context(self, found: Open) -> bool:
        """Whether a reward would have to be kept until the true context is known."""
        return self.obeyed.agent.awaits_context and found.seen[OBEYED].known is None

    def awaits(self, found: Open) -> bool:
        """Whether a reward is kept that cannot be learnt from before the true context is known."""
        waits = not found.dropped and not found.voided and self.awaits_context(found)
        return waits and found.seen[OBEYED].reward is not None

    def content(self) -> dict[str, Any]:
        """All that changes, in nested values."""
        return {name: runner.content() for name, runner in self._found.items()}

    def fill(self, content: Mapping[str, Any], features: FeatureMap) -> None:
        """Take back what `content` gave."""
        for name, told in content.items():
            if name not in self._found:
                self.join(name, features)
            self._found[name].fill(told, self._made.knowledge(features))


def _refuse(runner: Runner, unit: str, moment: Moment) -> None:
    """Complain of what an agent can make nothing of; nothing is changed."""
    who, channel = repr(runner.agent.name), runner.memory(unit).denoiser
    if runner.agent.can.look_back is not None and unit != next(iter(runner.channels), unit):
        allowed = f"one unit: the learner of {who} looks back on past rounds as those of one"
        raise InputError("unit", repr(unit), allowed)
    if runner.agent.can.use_time is None:
        if moment.noise is not None:
            allowed = f"none: to the denoiser of {who} all readings are alike"
            raise InputError("noise", "given for one reading", allowed)
        return
    moment = runner.agent.can.use_time.stamp(channel, moment)
    runner.agent.can.use_time.before(runner.setup.denoiser, channel, moment)


class State:
    """All that is remembered of a problem."""

    def __init__(self, made: Made) -> None:
        """Before the first decision."""
        self.made, self.terms = made, made.terms
        self.arms = Arms(made)
        self.runners = Runners(made, self.arms.features)
        self.windows = Windows(made.terms.wait, made.terms.reveal_within)
        self.floor = generator(made.terms.seed, 0, "floor")
        self.number = 0  # of the next decision
        self.watch = Watch(made, expects=self.runner.agent.can.expect is not None)
        self._erased = set[str]()  # no event of theirs is counted; none comes after what a snapshot has

    @property
    def runner(self) -> Runner:
        """The one that is obeyed."""
        return self.runners.obeyed

    @property
    def open(self) -> dict[str, Open]:
        """Decisions that may still change something, oldest first."""
        return self.windows.open

    def id_of(self, number: int) -> str:
        """The name of a decision."""
        return f"{number}-{self.terms.uid[:8]}"

    def offer(self, ask: Ask) -> Offer:
        """What a round is offered."""
        time, at, noise = self.moment(ask)
        return Offer(ask.noisy, ask.mask, time=time, arms=self.arms.mask(ask), at=at, noise=noise)

    def moment(self, ask: Ask) -> Moment:
        """When a reading is taken, and how noisy it is."""
        at = None if ask.at is None else np.asarray([ask.at])
        return Moment(np.asarray(self.number), at, ask.noise)

    def decide(self, ask: Ask, time: float) -> dict[str, Any]:
        """Decide: the body of the event, which has been applied."""
        self.close_past(time)
        self._again(ask.unit)
        told = ask.unit, self.offer(ask), self.arms.features_of(ask.vectors), self.number
        drawn, choices = self._drawn(), self.runners.choose(*told)
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
        self.watch.decided(self.arms.place.get(arm, 0), noisy, self.runner.expected_reading(kept[OBEYED]))
        self.watch.dated(time)
        self.watch.believed(self.number, time, ask.unit, partial(self.runner.bias_then, kept[OBEYED]))
        seen = self.runners.observe(ask.unit, kept)
        vector = None if ask.vectors is None else ask.vectors[arm]
        place = self.arms.place[arm] if vector is None else 0
        name = self.id_of(self.number)
        lost = () if ask.mask is None else tuple(np.flatnonzero(ask.mask[0] == 0).tolist())
        found = Open(name, self.number, ask.unit, time, arm, place, vector, seen, lost)
        self.windows.enter(found, hidden=self.runners.use_contexts, again=self.runners.lag > 0)
        self.number += 1

    def _again(self, unit: str) -> None:
        """Before a unit's next reading: its decision of so many rounds ago is learnt from again."""
        longest = self.runners.lag
        if not longest:
            return
        for name, runner in self.runners.items():
            past = self.windows.before(unit, runner.lag) if runner.lag else None
            if past is not None:
                self.runners.revisit(name, past, self.arms.features_of(past.brought))
        for gone in self.windows.forget(unit, longest):
            self._close_if_done(gone)

    def apply(self, kind: str, decision: str | None, body: Mapping[str, Any], time: float) -> None:
        """An event of the log."""
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
            self.runners.skip()
            self._erased.add(self.id_of(self.number))
            self.number += 1
            return
        ask = read(self.made, {name: body[name] for name in REQUEST if name in body})
        self._again(ask.unit)
        features = self.arms.features_of(ask.vectors)
        self._enter(ask, body["arm"], self.runners.denoise(ask.unit, self.offer(ask), features), time)

    def _reward(self, found: Open, body: Mapping[str, Any]) -> None:
        if body["outcome"] == "kept":
            found.rewards.append(body["value"])
        elif body["outcome"] in ("learnt", "waits"):
            self._learn(found, body["value"])
            self.watch.happened("answered")

    def _learn(self, found: Open, value: float) -> None:
        """All agents learn from a reward, or keep it for the true context it awaits."""
        law = self.runners.reward(found, self.arms.features_of(found.brought), value)
        found.paid = value
        self.windows.settle(found)
        if not self.runners.awaits(found):
            self.watch.rewarded(self.arms.place.get(found.arm, 0), value, law)
        elif not self.windows.is_hidden(found):
            self.windows.overdue[found.id] = None

    def _reveal(self, found: Open, body: Mapping[str, Any]) -> None:
        if body["outcome"] not in ("learnt", "noted") or "context" not in body:
            return
        news = {name: x for name, x in body["context"].items() if name not in found.shown}
        found.shown |= news
        self.watch.held_against(found, found.seen[OBEYED], news)
        features, waited = self.arms.features_of(found.brought), self.runners.awaits(found)
        before = (self.runner.memory(found.unit), self.runner.theta()) if waited else None
        self.runners.reveal(found, features, self.made.whole(found.shown))
        if before is not None and not self.runners.awaits(found):
            self._paired(found, features, *before)

    def _paired(self, found: Open, features: FeatureMap, memory: Memory, theta: Belief) -> None:
        """A reward was learnt with its true context: it is held against what was believed of theta before."""
        runner, value = self.runner, found.paid
        decision = found.seen[OBEYED].whole(runner, found.place, features, theta)
        law = predict.reward(runner.agent, runner.setup, memory, decision)
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
            value = terms.combined(one.rewards) if one.rewards else terms.default_reward
            found.append((one.id, {"what": "reward", "value": value}))
        late += self.windows.unseen(time)
        return found + [(one.id, {"what": "context"}) for one in late if self.runners.awaits(one)]

    def close_past(self, time: float) -> None:
        """True contexts that did not come are too late by now: decisions that are settled are let go."""
        for found in list(self.windows.unseen(time)):
            self.windows.shut(found)
            if self.runners.awaits(found):
                self.windows.overdue[found.id] = None
            self._close_if_done(found)

    def _close_if_done(self, found: Open) -> None:
        """Let go of what nothing can change any more."""
        known = len(found.shown) == len(self.terms.context)
        shown = known or not self.windows.is_hidden(found)
        over = found.voided or (shown and not self.windows.is_recent(found))
        if found.settled and over and not self.runners.awaits(found):
            self.windows.close(found)

    def _shadow(self, body: Mapping[str, Any]) -> None:
        """A shadow joins, or leaves."""
        if body.get("leaves"):
            self.runners.leave(body["agent"], self.open.values())
            return
        refuse_changed("shadow", body["agent"], body.get("fingerprint"))
        self.runners.join(body["agent"], self.arms.features)

    def refuse_arms(self, body: Mapping[str, Any]) -> None:
        """Complain of a change of arms that cannot be, or of more than there is memory for."""
        self.arms.refuse(body)
        if not body.get("add"):
            return
        features = self.arms.with_added(body["add"])
        if features.size > self.arms.features.size:
            for runner in self.runners.values():
                self.made.refuse_large("add", runner.agent, features)
            before, after = (self.made.knowledge(one) for one in (self.arms.features, features))
            for runner in self.runners.values():  # by doing it: nothing of this is kept
                grown(runner.agent, before, after, runner.setup, runner.memory(""))

    def _arms(self, body: Mapping[str, Any]) -> None:
        """Arms come, go and come back."""
        before = self.made.knowledge(self.arms.features)
        self.arms.change(body, self.number)
        after = self.made.knowledge(self.arms.features)
        self.runners.grow(before, after, self.open.values())


ABOUT_DECISIONS = {
    "reward": State._reward,
    "reveal": State._reveal,
    "void": State._void,
    "expire": State._expire,
}
