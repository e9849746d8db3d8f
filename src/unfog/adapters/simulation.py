"""One trial of the lab for loops that belong to somebody else: its agent, and its problem round by round.

`Decider` is an agent of the catalogue on plain arrays:

    decide   a noisy context comes, an arm and its probability go
    learn    the reward of that decision comes, at once or later
    reveal   so does its true context, where it ever does

The round is that of agents/round.py, played by agents/runner.py; nothing is decided or learnt here. The
random numbers are those that the lab gives the agent in this trial of this seed, so that an agent which
plays a trial of the lab here takes the same arms as there.

`Episode` is a problem for somebody else's loop, with exactly the numbers of the lab. The lab makes a world in
blocks of rounds from streams that depend on the seed and the trial alone (maths/random.py). An episode makes
the same blocks with the same function, so that trial k of seed s has the same noisy contexts here and in
`unfog.run`, to the last bit, and an arm pays the same. An episode gives out what an agent may see: the noisy
context, and a true context only if the problem shows it, and as late as it does. Regret is that of
theory/regret.py, for measuring and not for deciding.
"""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unfog import validation
from unfog.agents.agent import Agent, check_fit
from unfog.agents.catalogue import Catalogue, select_rows, with_own
from unfog.agents.round import Considered, Decision, Observation
from unfog.agents.runner import Recent, Runner
from unfog.features import FeatureMap
from unfog.maths.arrays import Array, Bools, Ints
from unfog.simulation import MOST_SEED, MOST_TRIALS
from unfog.simulation.engines.numpy import BLOCK_ROUNDS, make_block
from unfog.simulation.job import Job, Nature, truth_draws
from unfog.simulation.player import to_reveal
from unfog.validation import InputError, check_keywords, display
from unfog.worlds.problem import Emission, Problem
from unfog.worlds.record import Recorded
from unfog.worlds.synthetic import Synthetic


@dataclass
class Choice:
    """A decision, to be handed back with its reward and its true context.

    >>> import unfog
    >>> from unfog.adapters.simulation import Decider, features_of
    >>> problem = unfog.GaussianProblem(dim=2, actions=3, features="per_arm")
    >>> choice = Decider("unfog", problem, features_of(problem), seed=1).decide([0.4, -1.2])
    >>> choice.arm in range(3), round(float(choice.probabilities.sum()), 6)
    (True, 1.0)
    """

    arm: int
    probability: float
    probabilities: Array  # (K,)
    unit: str
    decision: Decision  # the round as far as it has come; changes as more becomes known

    def change_arm(self, arm: int) -> None:
        """Record that another arm was taken than the chosen one."""
        arms = np.asarray([arm])
        evidence = self.decision.evidence._replace(arm=arms)
        self.arm, self.decision = arm, self.decision._replace(arm=arms, evidence=evidence)


@check_keywords
class Decider:
    """One agent at one problem. A noisy coordinate that is not a number was lost.

    >>> import unfog
    >>> from unfog.adapters.simulation import Decider, features_of
    >>> problem = unfog.GaussianProblem(dim=2, actions=3, features="per_arm")
    >>> agent = Decider("unfog", problem, features_of(problem), seed=1)
    >>> choice = agent.decide([0.4, -1.2])
    >>> agent.learn(choice, 1.0)
    >>> 0 <= choice.arm < 3
    True
    """

    def __init__(
        self,
        agent: str | Agent,
        problem: Problem,
        features: FeatureMap | None = None,
        *,
        seed: int = 0,
        trial: int = 0,
        reveal: bool = True,
    ) -> None:
        """The agent is told the problem's laws and its kind of rewards, and nothing that was drawn.

        `features` are those of the trial, where actions are drawn: `Env.features`, or `features_of`. Unless
        `reveal` is on, true contexts stay hidden, and agents that cannot learn without them are refused.
        """
        validation.check_contract("problem", problem, Problem, "a world, such as unfog.GaussianProblem()")
        validation.count("seed", seed, 0, MOST_SEED)
        validation.count("trial", trial, 0, MOST_TRIALS)
        self.problem = problem
        self.features = features_of(problem) if features is None else features
        self.agent = _find_agent(agent, problem, self.features, reveal)
        self._runner = Runner(self.agent, problem.knowledge(), seed, [trial])
        self._number, self._recent = 0, Recent[Choice](self._runner.lag)

    def decide(
        self,
        noisy: Array,
        *,
        arms: Collection[int] | None = None,
        measured: Array | None = None,
        unit: object = "",
        time: float | None = None,
    ) -> Choice:
        """Choose one of these arms, or of all, for a noisy context (d,)."""
        observation, unit_name = self._make_observation(noisy, measured, time, arms), str(unit)
        self._runner.check_unit(unit_name)
        self._revisit(unit_name)
        normals = self._runner.draw()
        considered = self._runner.consider(unit_name, observation, self.features)
        arm, shares = self._runner.choose(considered, normals, self._number)
        return self._record(considered, arm, shares, unit_name)

    def follow(
        self,
        noisy: Array,
        arm: int,
        *,
        measured: Array | None = None,
        unit: object = "",
        time: float | None = None,
    ) -> Choice:
        """Play a round whose arm somebody else has chosen; it is learnt from like any other."""
        observation, unit_name = self._make_observation(noisy, measured, time, [arm]), str(unit)
        self._runner.check_unit(unit_name)
        self._revisit(unit_name)
        self._runner.draw()
        considered = self._runner.consider(unit_name, observation, self.features)
        return self._record(considered, arm, np.eye(self.problem.arms())[arm], unit_name)

    def learn(self, choice: Choice, reward: float) -> None:
        """Learn the reward of a decision."""
        validation.check_reward("reward", np.asarray(reward, float), self.problem.rewards.kind)
        choice.decision = self._runner.reward(choice.unit, choice.decision, float(reward))

    def reveal(self, choice: Choice, context: Array) -> None:
        """Reveal the true context (d,), NaN where it stays hidden; agents that do not use it ignore it."""
        true = np.asarray(context, float)[None]
        validation.check_finite("context", true[0], gaps="hidden")
        if self.agent.awaits_context and np.isnan(true).any():
            allowed = f"the complete context: {self.agent.name!r} cannot learn from a part of it"
            raise InputError("context", display(context), allowed)
        if self.agent.sees_context:
            choice.decision = self._runner.reveal(choice.unit, choice.decision, true)

    def probabilities(self, noisy: Array, *, arms: Collection[int] | None = None, unit: object = "") -> Array:
        """The probability of each arm if `decide` were called now, (K,); nothing is drawn or learnt by it."""
        observation = self._make_observation(noisy, None, None, arms)
        return self._runner.probabilities(str(unit), observation, self.features, self._number)

    def _record(self, considered: Considered, arm: int, shares: Array, unit: str) -> Choice:
        decision = self._runner.take(unit, considered, arm, self.features)
        choice = Choice(arm, float(shares[arm]), shares, unit, decision)
        self._number += 1
        self._recent.add(unit, choice)
        return choice

    def _revisit(self, unit: str) -> None:
        """Learn again from an earlier round, if the agent does that."""
        past = self._recent.due(unit)
        if past is not None:
            past.decision = self._runner.revisit(unit, past.decision)

    def _make_observation(
        self, noisy: Array, measured: Array | None, time: float | None, arms: Collection[int] | None
    ) -> Observation:
        """Check the arguments and make the observation, a batch of one."""
        values, dim = np.asarray(noisy, float), len(self.problem.knowledge().context_mean)
        if values.shape != (dim,):
            raise InputError("context", f"{values} of shape {values.shape}", f"{dim} numbers, nan where lost")
        validation.check_finite("context", values, gaps="lost")
        lost = np.isnan(values) if measured is None else np.isnan(values) | ~np.asarray(measured, bool)
        at = None if time is None else np.asarray([time], float)
        mask = (~lost[None]).astype(float) if lost.any() else None
        number = np.asarray(self._number)
        return Observation(values[None], mask, round=number, arms=self._read_arms(arms), measured_at=at)

    def _read_arms(self, arms: Collection[int] | None) -> Array | None:
        if arms is None:
            return None
        number, among = self.problem.arms(), np.zeros((1, self.problem.arms()), bool)
        indices = [validation.count("arm", arm, 0, number - 1) for arm in arms]
        if not indices:
            raise InputError("arms", "none", f"one or more of 0 to {number - 1}")
        among[0, indices] = True
        return None if among.all() else among


@check_keywords
def features_of(problem: Problem, actions: Array | None = None) -> FeatureMap:
    """The feature map of a problem, a batch of one; `actions` (K, p) are needed if the problem draws them."""
    needed = problem.truth_draws()
    draws = {name: np.zeros((1, *draws.shape)) for name, draws in needed.items()}
    if "actions" in needed:
        shape, law = needed["actions"].shape, needed["actions"].law
        if actions is None:
            allowed = f"those of the trial, of shape {shape}: this problem draws them anew in every trial"
            raise InputError("actions", "missing", allowed)
        values = validation.numbers("actions", actions, f"numbers of shape {shape}")
        if values.shape != shape:
            raise InputError("actions", f"of shape {values.shape}", f"numbers of shape {shape}")
        draws["actions"] = values[None] if law == "normal" else (values[None] + 1) / 2
    return problem.truth(draws).features


def _find_agent(agent: str | Agent, problem: Problem, features: FeatureMap, is_revealed: bool) -> Agent:
    """The agent of this name, if it can play this problem."""
    names, own = with_own([agent])
    known, kind = problem.knowledge(), problem.rewards.kind
    [row] = select_rows(names, "agent", Catalogue(kind, own, known.beyond_moments))
    if row.can.see_bias is not None:
        raise InputError("agent", f"{row.name!r} is told the bias", "agents that go without: nobody tells it")
    partial = problem.partial or not is_revealed
    check_fit(row, known, features, rewards=kind, partial=partial, has_bias=problem.has_bias)
    return row


class Reading(NamedTuple):
    """What is known before a decision."""

    round: int  # from 0
    noisy: Array  # (d,)  the mean of contexts where a coordinate was lost
    measured: Bools | None  # (d,)  false where it was lost; None: nothing ever is
    unit: int | None  # which unit the context is from; None: there is one unit
    time: float | None  # None: the number of the round


class Revealed(NamedTuple):
    """A true context that the problem shows."""

    round: int  # the round that it belongs to
    context: Array  # (d,)  NaN where a coordinate stays hidden


class Paid(NamedTuple):
    """The outcome of a decision."""

    reward: float
    regret: float
    revealed: Revealed | None  # which may be of an earlier round


@check_keywords
class Episode:
    """One trial of a problem, from its first round on."""

    def __init__(self, problem: Problem, seed: int, trial: int = 0) -> None:
        """Start before the first round."""
        check_playable(problem)
        validation.count("seed", seed, 0, MOST_SEED)
        validation.count("trial", trial, 0, MOST_TRIALS)
        self.problem, self.number = problem, 0
        draws = truth_draws(seed, [trial], problem.truth_draws())
        self._truth = problem.truth(draws)
        self.features: FeatureMap = self._truth.features  # a batch of one trial
        self.actions = _arm_vectors(problem, draws.get("actions"))
        self._job = Job(problem, (), np.asarray([BLOCK_ROUNDS]), np.asarray([], int), seed, decompose=False)
        self._nature = Nature(problem, seed, [trial])
        self._late = deque[Revealed]()
        self._make_block()

    def _make_block(self) -> None:
        numbers = self.number + np.arange(BLOCK_ROUNDS)
        self._block = make_block(self._job, self._truth, *self._nature.next(BLOCK_ROUNDS), numbers)
        self._losses: Array | None = None  # (K, BLOCK)  of every arm, computed when first needed

    @property
    def _index(self) -> int:
        return self.number % BLOCK_ROUNDS

    def _emission(self) -> Emission:
        """What nature drew in the current round, (1, ...)."""
        parts = self._block.emission[:-1]
        return Emission(*(None if x is None else x[:, self._index] for x in parts))  # type: ignore[arg-type]

    def reading(self) -> Reading:
        """What an agent may see of the current round."""
        emission = self._emission()
        measured = None if emission.mask is None else emission.mask[0] > 0
        unit = None if emission.unit is None else int(emission.unit[0])
        return Reading(
            self.number,
            emission.noisy[0].copy(),
            measured,
            unit,
            None if emission.at is None else float(emission.at[0]),
        )

    def pay(self, arm: int) -> Paid:
        """Take an arm and go on to the next round."""
        t, best = self._index, self._block.tables.paper.best[0, self._index]
        regret = best - self._block.tables.paper.values(np.full((1, BLOCK_ROUNDS), arm))[0, t]
        reward = self._pay_arms(np.asarray([[arm]]))[0]
        self._late.append(Revealed(self.number, to_reveal(self._emission())[0]))
        revealed = self._late.popleft() if len(self._late) > self.problem.reveal_delay else None
        if revealed is not None and np.isnan(revealed.context).all():
            revealed = None
        self.number += 1
        if self._index == 0:
            self._make_block()
        return Paid(float(reward), float(regret), revealed)

    def every(self) -> tuple[Array, Array]:
        """The reward and the regret of each arm in the current round: (K,) each."""
        arms, paper = np.arange(self.problem.arms()), self._block.tables.paper
        if self._losses is None:
            worth = [paper.values(np.full((1, BLOCK_ROUNDS), arm))[0] for arm in arms]
            self._losses = paper.best[0] - np.stack(worth)
        return self._pay_arms(arms[None]), self._losses[:, self._index]

    def _pay_arms(self, arms: Ints) -> Array:
        """The rewards of arms (1, n) in the current round: (n,)."""
        scores = self._block.tables.true_context[0, self._index][arms]
        paid = self.problem.reward(scores, self._block.normals[:, self._index, None])
        validation.check_reward("problem.reward", paid, self.problem.rewards.kind)
        return paid[0]


def check_playable(problem: Problem) -> None:
    """Raise InputError for what is not a world, and for one that shows true contexts on request."""
    validation.check_contract("problem", problem, Problem, "a world, such as unfog.GaussianProblem()")
    if problem.on_request:
        raise InputError("problem.reveal", "on_request", "random or every: here nobody can ask")


def _arm_vectors(problem: Problem, draws: Array | None) -> Array | None:
    """The numbers that tell arms apart, (K, p); None where an arm has a name alone."""
    if draws is not None:
        uniform = problem.truth_draws()["actions"].law == "uniform"
        return 2 * draws[0] - 1 if uniform else draws[0]
    actions = problem.actions if isinstance(problem, Synthetic | Recorded) else None
    return np.asarray(actions, float) if np.ndim(actions) == 2 else None  # type: ignore[arg-type]
