"""The state of a live problem: a fold of its events, by the agent in charge and its shadows.

Nothing here reads a clock or a file. Every change is an event, and `State.apply` is how an event changes the
state: when it happens, and again when the log is read from its beginning. So the beliefs follow from the log
alone. A decision is made by `State.decide`, which asks the agents; a replay takes the arm from the log.

    decide   the channel learns from the noisy context; the decision is open
    reward   learnt at once, or kept until the reward window is over; if it is late, it is only counted
    reveal   a true context, complete or in part, for the agents that learn from it
    cancel   the decision was never shown: nothing is learnt
    expire   the window is over: the kept rewards or the default are learnt; or a reward that waited for its
             true context is dropped
    arms     added, retired, restored        pin   one arm from now on           shadow   one more agent

`Runners` holds the agents, each in a runner (agents/runner.py): the one whose choices are carried out, and
its shadows, which see and learn the same.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from unfog.agents import predict
from unfog.agents.base import Moment
from unfog.agents.grow import grow_agent
from unfog.agents.round import Denoised, Memory, Observation
from unfog.agents.runner import Law, Runner
from unfog.channel.knowledge import Knowledge
from unfog.features import FeatureMap
from unfog.live.arms import Arms
from unfog.live.config import PreparedProblem, check_code
from unfog.live.monitoring import Watch
from unfog.live.pending import CompactDecision, PendingDecision, Windows
from unfog.live.requests import REQUEST, DecisionRequest, read
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Belief
from unfog.maths.random import generator
from unfog.validation import InputError

PRIMARY = ""  # the name of the agent in charge, whose choices are carried out
SHADOW = ("arm", "probability", "agent_probabilities")  # the fields of a shadow's choice in the log


class Choice(NamedTuple):
    """The choice of one agent."""

    denoised: Denoised
    arm_index: int
    probabilities: Array  # (K,)  the probability with which it takes each arm


class Runners(Mapping[str, Runner]):
    """The agents of a problem by name; first the one in charge."""

    def __init__(self, config: PreparedProblem, features: FeatureMap) -> None:
        """Begin with the problem's own agent."""
        self._config = config
        self._runners = {PRIMARY: Runner(config.agent, config.knowledge(features), config.terms.seed)}

    def __getitem__(self, name: str) -> Runner:
        return self._runners[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._runners)

    def __len__(self) -> int:
        return len(self._runners)

    @property
    def primary(self) -> Runner:
        """The agent in charge, whose choices are carried out."""
        return self._runners[PRIMARY]

    def join(self, agent: str, features: FeatureMap) -> None:
        """Add a shadow."""
        shadow = self._config.agent_named("shadow", agent, features)
        self._runners[agent] = Runner(shadow, self._config.knowledge(features), self._config.terms.seed)

    def leave(self, agent: str, decisions: Iterable[PendingDecision]) -> None:
        """Remove a shadow, and its part of open decisions."""
        del self._runners[agent]
        for decision in decisions:
            decision.seen.pop(agent, None)

    @property
    def use_contexts(self) -> bool:
        """Whether any agent learns from true contexts."""
        return any(runner.agent.sees_context for runner in self._runners.values())

    @property
    def lag(self) -> int:
        """After how many rounds, at most, an agent learns from a round again; 0: never."""
        return max(runner.lag for runner in self._runners.values())

    def check_reading(self, ask: DecisionRequest, moment: Moment) -> None:
        """Raise InputError if the agent in charge cannot use the unit, time or noise of this request."""
        _check_reading(
            self.primary, ask.unit, moment, "noise_sd" if "noise_sd" in ask.request else "noise_cov"
        )

    def check_batch(self, field: str, asks: Sequence[DecisionRequest], number: int) -> None:
        """Raise InputError if the agent in charge cannot decide these requests one after the other.

        Each request was checked by itself. The first will be decision `number`.
        """
        agent, last = self.primary.agent, dict[str, float]()
        for i, ask in enumerate(asks):
            if agent.can.look_back is not None and ask.unit != asks[0].unit:
                raise InputError(f"{field}[{i}].unit", repr(ask.unit), "one unit, for this agent")
            now = float(number + i) if ask.measured_at is None else ask.measured_at
            if agent.can.use_time is not None and now < last.get(ask.unit, now):
                before = last[ask.unit]
                raise InputError(
                    f"{field}[{i}].measured_at", f"{now} after {before}", "times that never go back"
                )
            last[ask.unit] = now

    def choose(
        self, unit: str, observation: Observation, features: FeatureMap, number: int
    ) -> dict[str, Choice]:
        """The choice of every agent in decision `number`."""
        choices = {}
        for name, runner in self._select_runners(unit, observation):
            normals = runner.draw()
            considered = runner.consider(unit, observation, features)
            view = considered.view
            belief = None if runner.agent.can.look_back is None else view.belief
            denoised = Denoised(considered.reading, view.context, belief)
            choices[name] = Choice(denoised, *runner.choose(considered, normals, number))
        return choices

    def denoise(self, unit: str, observation: Observation, features: FeatureMap) -> dict[str, Denoised]:
        """The belief of every agent about a reading whose arm is known; draws random numbers as `choose`."""
        beliefs = {}
        for name, runner in self._select_runners(unit, observation):
            runner.draw()
            beliefs[name] = runner.denoise(unit, observation, features)
        return beliefs

    def _select_runners(self, unit: str, observation: Observation) -> Iterator[tuple[str, Runner]]:
        """The agent in charge, and the shadows that can use this reading.

        A shadow that cannot use it skips the decision: it must never stop the others.
        """
        for name, runner in self._runners.items():
            try:
                if name != PRIMARY:
                    _check_reading(
                        runner, unit, Moment(observation.round, observation.measured_at, observation.noise)
                    )
            except InputError:
                continue
            yield name, runner

    def skip(self) -> None:
        """Draw the random numbers of a decision without making it."""
        for runner in self._runners.values():
            runner.draw()

    def observe(self, unit: str, beliefs: Mapping[str, Denoised]) -> dict[str, CompactDecision]:
        """Let the channel of every agent learn from a reading; the compact decision of each agent."""
        for name, denoised in beliefs.items():
            self._runners[name].observe(unit, denoised)
        return {name: CompactDecision.of(denoised) for name, denoised in beliefs.items()}

    def reward(self, pending: PendingDecision, features: FeatureMap, value: float) -> Law | None:
        """Let every agent learn from a reward, or keep it until the true context comes.

        Returns mean and variance of the reward as the agent in charge predicted them, if it did.
        """
        expected = None
        for name, compact in pending.seen.items():
            runner = self._runners[name]
            decision = compact.whole(runner, pending.place, features)
            prediction = None
            if runner.agent.clip_sd is None or runner.agent.learner.rewards != "gaussian":
                decision = decision._replace(evidence=decision.evidence.weighed())
                prediction = predict.reward(runner.agent, runner.setup, runner.memory(pending.unit), decision)
            decision = runner.reward(pending.unit, decision, value)
            pending.seen[name] = compact.after(decision)
            if name == PRIMARY:
                expected = decision.law or prediction  # a round that bounds rewards returns its prediction
        return expected

    def reveal(self, pending: PendingDecision, features: FeatureMap, context: Array) -> None:
        """Pass a true context, (1, d) with NaN where it is not known, to the agents that learn from it."""
        is_complete = not np.isnan(context).any()
        for name, compact in pending.seen.items():
            runner = self._runners[name]
            if runner.agent.can.revise is not None or (runner.agent.awaits_context and is_complete):
                decision = compact.whole(runner, pending.place, features)
                pending.seen[name] = compact.after(runner.reveal(pending.unit, decision, context))

    def revisit(self, name: str, pending: PendingDecision, features: FeatureMap) -> None:
        """Let one agent learn from a past decision again."""
        if name in pending.seen and not pending.is_cancelled:
            compact, runner = pending.seen[name], self._runners[name]
            decision = compact.whole(runner, pending.place, features)
            pending.seen[name] = compact.after(runner.revisit(pending.unit, decision))

    def grow(self, before: Knowledge, after: Knowledge, decisions: Iterable[PendingDecision]) -> None:
        """Extend the beliefs about theta to arms that were added, also those in open decisions."""
        for name, runner in self._runners.items():
            runner.grow(before, after)
            for decision in decisions:
                if name in decision.seen:
                    decision.seen[name] = decision.seen[name].grown(after)

    def awaits_context(self, pending: PendingDecision) -> bool:
        """Whether a reward would have to wait until the true context is known."""
        return self.primary.agent.awaits_context and pending.seen[PRIMARY].known is None

    def awaits(self, pending: PendingDecision) -> bool:
        """Whether it has a reward that waits until the true context is known."""
        waits = not pending.dropped and not pending.is_cancelled and self.awaits_context(pending)
        return waits and pending.seen[PRIMARY].reward is not None

    def content(self) -> dict[str, Any]:
        """Everything that changes, in nested values."""
        return {name: runner.content() for name, runner in self._runners.items()}

    def fill(self, content: Mapping[str, Any], features: FeatureMap) -> None:
        """Restore what `content` returned."""
        for name, runner_content in content.items():
            if name not in self._runners:
                self.join(name, features)
            self._runners[name].fill(runner_content, self._config.knowledge(features))


def _check_reading(runner: Runner, unit: str, moment: Moment, noise_field: str = "noise_cov") -> None:
    """Raise InputError if an agent cannot use this unit, time or noise covariance."""
    runner.check_unit(unit)
    name, channel = repr(runner.agent.name), runner.memory(unit).denoiser
    if moment.noise is not None and not runner.agent.takes_noise:
        raise InputError(noise_field, "given for one reading", f"none: to {name} all readings are alike")
    if runner.agent.can.use_time is None:
        return
    moment = runner.agent.can.use_time.stamp(channel, moment)
    runner.agent.can.use_time.before(runner.setup.denoiser, channel, moment)


class State:
    """The state of a problem: arms, agents, open decisions and statistics."""

    def __init__(self, config: PreparedProblem) -> None:
        """Begin before the first decision."""
        self.made, self.terms = config, config.terms
        self.arms = Arms(config)
        self.runners = Runners(config, self.arms.features)
        self.windows = Windows(config.terms.reward_window, config.terms.context_window)
        self.exploration = generator(config.terms.seed, 0, "floor")  # another name would draw other numbers
        self.number = 0  # of the next decision
        self.watch = Watch(config, self.runner.agent)
        self.erased = set[str]()  # decisions whose events do not count

    @property
    def runner(self) -> Runner:
        """The runner of the agent in charge."""
        return self.runners.primary

    @property
    def open(self) -> dict[str, PendingDecision]:
        """The open decisions by id, oldest first."""
        return self.windows.open

    def id_of(self, number: int) -> str:
        """The id of a decision."""
        return f"{number}-{self.terms.uid[:8]}"

    def make_observation(self, ask: DecisionRequest) -> Observation:
        """The input of a round, from a request."""
        time, at, noise = self.moment(ask)
        return Observation(
            ask.noisy, ask.mask, round=time, arms=self.arms.mask(ask), measured_at=at, noise=noise
        )

    def moment(self, ask: DecisionRequest) -> Moment:
        """The time of a reading, and its noise covariance if it has its own."""
        at = None if ask.measured_at is None else np.asarray([ask.measured_at])
        return Moment(np.asarray(self.number), at, ask.noise_cov)

    def decide(self, ask: DecisionRequest, time: float) -> dict[str, Any]:
        """Make a decision, and return the body of its event, which is applied already."""
        self.close_past(time)
        self._revisit_past(ask.unit)
        round_input = ask.unit, self.make_observation(ask), self.arms.features_of(ask.vectors), self.number
        uniforms, choices = self._draw_uniforms(), self.runners.choose(*round_input)
        actions = {
            name: self.arms.mixed(ask, choice.arm_index, choice.probabilities, uniforms)
            for name, choice in choices.items()
        }
        body = {"number": self.number, **ask.request, **self.arms.carry_out(ask, actions[PRIMARY])}
        body |= self._describe_belief(choices[PRIMARY].denoised)
        if len(actions) > 1:
            shadows = (name for name in actions if name != PRIMARY)
            body["shadows"] = {name: {part: actions[name][part] for part in SHADOW} for name in shadows}
        self._enter(ask, body["arm"], {name: choice.denoised for name, choice in choices.items()}, time)
        return body

    def _draw_uniforms(self) -> Array | None:
        """Two uniform random numbers, the same for all agents, to explore with; None if epsilon is 0."""
        return self.exploration.random(2) if self.terms.epsilon else None

    def _describe_belief(self, denoised: Denoised) -> dict[str, Any]:
        """The belief about the context, in the caller's units."""
        units, names = self.made.units, self.terms.context
        mean, cov = self.runner.believed_context(denoised.context)
        matrix = cov if cov.ndim == 2 else cov[0]
        sd, mean = np.sqrt(matrix.diagonal()) * units.scale, units.outside(mean[0])
        return {
            "denoised": dict(zip(names, mean.tolist(), strict=True)),
            "sd": dict(zip(names, sd.tolist(), strict=True)),
        }

    def _enter(self, ask: DecisionRequest, arm: str, beliefs: dict[str, Denoised], time: float) -> None:
        """Add an open decision, and let the agents learn from its noisy context."""
        noisy = ask.noisy if ask.mask is None else np.where(ask.mask > 0, ask.noisy, np.nan)
        self.watch.decided(self.arms.place.get(arm, 0), noisy, self.runner.expected_reading(beliefs[PRIMARY]))
        self.watch.dated(time)
        self.watch.believed(self.number, time, ask.unit, partial(self.runner.bias_then, beliefs[PRIMARY]))
        compact = self.runners.observe(ask.unit, beliefs)
        vector = None if ask.vectors is None else ask.vectors[arm]
        arm_index = self.arms.place[arm] if vector is None else 0
        name = self.id_of(self.number)
        lost = () if ask.mask is None else tuple(np.flatnonzero(ask.mask[0] == 0).tolist())
        pending = PendingDecision(name, self.number, ask.unit, time, arm, arm_index, vector, compact, lost)
        self.windows.enter(pending, hidden=self.runners.use_contexts, again=self.runners.lag > 0)
        self.number += 1

    def _revisit_past(self, unit: str) -> None:
        """Before a unit's next reading, let agents with a lag learn from its past decision again."""
        lag = self.runners.lag
        if not lag:
            return
        for name, runner in self.runners.items():
            past = self.windows.before(unit, runner.lag) if runner.lag else None
            if past is not None:
                self.runners.revisit(name, past, self.arms.features_of(past.brought))
        for forgotten in self.windows.forget(unit, lag):
            self._close_if_done(forgotten)

    def apply(self, kind: str, decision: str | None, body: Mapping[str, Any], time: float) -> None:
        """Apply an event of the log."""
        self.close_past(time)
        if kind == "decide":
            self._apply_decision(body, time)
        elif kind in ABOUT_DECISIONS:
            self._apply_to_decision(kind, decision or "", body)
        elif kind == "arms":
            self._apply_arms(body)
        elif kind == "pin":
            self.arms.pinned = body["arm"]
        elif kind == "shadow":
            self._apply_shadow(body)

    def _apply_to_decision(self, kind: str, decision: str, body: Mapping[str, Any]) -> None:
        """Apply an event of one decision, which may be closed or erased."""
        if decision in self.erased:
            return
        self.watch.counted(kind, body)
        pending = self.open.get(decision)
        if pending is not None:
            ABOUT_DECISIONS[kind](self, pending, body)
            self._close_if_done(pending)
        elif kind == "reveal" and "believed" in body:
            self.watch.looked_back(body)
        elif kind == "cancel" and body["outcome"] == "cancelled":  # if closed, it had expired
            self.watch.happened("expired", -1)

    def _apply_decision(self, body: Mapping[str, Any], time: float) -> None:
        """Apply a decision of the log, whose arm is known; of an erased one only draw its random numbers."""
        self._draw_uniforms()
        if body.get("erased"):
            self.runners.skip()
            self.erased.add(self.id_of(self.number))
            self.number += 1
            return
        ask = read(self.made, {name: body[name] for name in REQUEST if name in body})
        self._revisit_past(ask.unit)
        features = self.arms.features_of(ask.vectors)
        self._enter(
            ask, body["arm"], self.runners.denoise(ask.unit, self.make_observation(ask), features), time
        )

    def _apply_reward(self, pending: PendingDecision, body: Mapping[str, Any]) -> None:
        if body["outcome"] == "kept":
            pending.rewards.append(body["value"])
        elif body["outcome"] in ("learnt", "waits"):
            self._learn(pending, body["value"])
            self.watch.happened("answered")

    def _learn(self, pending: PendingDecision, value: float) -> None:
        """Let all agents learn from a reward, or keep it until the true context comes."""
        prediction = self.runners.reward(pending, self.arms.features_of(pending.brought), value)
        pending.paid = value
        self.windows.settle(pending)
        if not self.runners.awaits(pending):
            self.watch.rewarded(self.arms.place.get(pending.arm, 0), value, prediction)
        elif not self.windows.is_hidden(pending):
            self.windows.overdue[pending.id] = None

    def _apply_reveal(self, pending: PendingDecision, body: Mapping[str, Any]) -> None:
        if body["outcome"] not in ("learnt", "noted") or "context" not in body:
            return
        new = {name: x for name, x in body["context"].items() if name not in pending.revealed}
        pending.revealed |= new
        seen = pending.seen[PRIMARY]
        self.watch.held_against(pending, seen.noisy, self.runner.believed_context(seen.context), new)
        features, did_wait = self.arms.features_of(pending.brought), self.runners.awaits(pending)
        belief_before = (self.runner.memory(pending.unit), self.runner.theta()) if did_wait else None
        self.runners.reveal(pending, features, self.made.whole(pending.revealed))
        if belief_before is not None and not self.runners.awaits(pending):
            self._count_paired(pending, features, *belief_before)

    def _count_paired(
        self, pending: PendingDecision, features: FeatureMap, memory: Memory, theta: Belief
    ) -> None:
        """Count a reward that was learnt with its true context; earlier beliefs give its prediction."""
        runner, value = self.runner, pending.paid
        decision = pending.seen[PRIMARY].whole(runner, pending.place, features, theta)
        prediction = predict.reward(runner.agent, runner.setup, memory, decision)
        if value is not None:
            self.watch.rewarded(self.arms.place.get(pending.arm, 0), value, prediction)

    def _apply_cancel(self, pending: PendingDecision, body: Mapping[str, Any]) -> None:  # noqa: ARG002
        if pending.expired or pending.paid is not None:
            self.watch.happened("answered" if pending.rewards or not pending.expired else "expired", -1)
        pending.is_cancelled = True
        self.windows.settle(pending)

    def _apply_expire(self, pending: PendingDecision, body: Mapping[str, Any]) -> None:
        if body["expired"] == "context":
            pending.dropped = True
            return
        if body["value"] is not None:
            self._learn(pending, body["value"])
        self.watch.happened("answered" if pending.rewards else "expired")
        pending.expired = True
        self.windows.settle(pending)

    def due(self, time: float) -> list[tuple[str, dict[str, Any]]]:
        """The expiries that are due at this time, oldest first: ids and bodies of their events."""
        terms, overdue = self.terms, [self.open[name] for name in self.windows.overdue]
        expiries: list[tuple[str, dict[str, Any]]] = []
        for pending in self.windows.unpaid(time):
            value = terms.aggregate(pending.rewards) if pending.rewards else terms.default_reward
            expiries.append((pending.id, {"expired": "reward", "value": value}))
        overdue += self.windows.unseen(time)
        return expiries + [
            (pending.id, {"expired": "context"}) for pending in overdue if self.runners.awaits(pending)
        ]

    def close_past(self, time: float) -> None:
        """Stop waiting for true contexts that are too late by now, and close decisions that are done."""
        for pending in list(self.windows.unseen(time)):
            self.windows.shut(pending)
            if self.runners.awaits(pending):
                self.windows.overdue[pending.id] = None
            self._close_if_done(pending)

    def _close_if_done(self, pending: PendingDecision) -> None:
        """Close a decision if nothing can change it any more."""
        is_known = len(pending.revealed) == len(self.terms.context)
        is_context_done = is_known or not self.windows.is_hidden(pending)
        is_over = pending.is_cancelled or (is_context_done and not self.windows.is_recent(pending))
        if pending.settled and is_over and not self.runners.awaits(pending):
            self.windows.close(pending)

    def _apply_shadow(self, body: Mapping[str, Any]) -> None:
        """Add or remove a shadow."""
        if body.get("removed"):
            self.runners.leave(body["agent"], self.open.values())
            return
        check_code("shadow", body["agent"], body.get("module_hash"))
        self.runners.join(body["agent"], self.arms.features)

    def check_arms(self, body: Mapping[str, Any]) -> None:
        """Raise InputError if a change of arms is impossible, or would take too much memory."""
        self.arms.check_change(body)
        if not body.get("add"):
            return
        features = self.arms.with_added(body["add"])
        if features.size > self.arms.features.size:
            for runner in self.runners.values():
                self.made.check_size("add", runner.agent, features)
            before, after = (self.made.knowledge(x) for x in (self.arms.features, features))
            for runner in self.runners.values():  # a trial: the results are not used
                grow_agent(runner.agent, before, after, runner.setup, runner.memory(""))

    def _apply_arms(self, body: Mapping[str, Any]) -> None:
        """Add, retire and restore arms."""
        before = self.made.knowledge(self.arms.features)
        self.arms.change(body, self.number)
        after = self.made.knowledge(self.arms.features)
        self.runners.grow(before, after, self.open.values())


ABOUT_DECISIONS = {
    "reward": State._apply_reward,
    "reveal": State._apply_reveal,
    "cancel": State._apply_cancel,
    "expire": State._apply_expire,
}
