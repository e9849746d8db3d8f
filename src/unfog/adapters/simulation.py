"""One trial of the lab for loops that belong to somebody else: its agent, and its problem round by round.

`Decider` is an agent of the catalogue on plain arrays:

    decide   a noisy context comes, an arm and its probability go
    learn    the reward of that decision comes, at once or later
    reveal   so does its true context, where it ever does

The round is that of agents/round.py, held by agents/runner.py; nothing is decided or learnt here. The
random numbers are those that the lab gives the agent in this trial of this seed, so that an agent which is
fed a trial of the lab takes the arms that it takes there.

`Episode` is a problem played by somebody else, with the very numbers of the lab. The lab makes a world in
blocks of rounds from streams that hang on the seed and the trial alone (maths/random.py). An episode makes
the same blocks with the same function, so that trial k of seed s has the same noisy contexts here and in
`unfog.run`, to the last bit, and an arm is paid the same. What is handed out is what an agent may see: the
noisy context, and a true context only where the problem shows it, as late as it does. Regret is that of
theory/regret.py, for who measures and not for who decides.
"""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unfog import validation
from unfog.agents.agent import Agent, refuse_misfit
from unfog.agents.catalogue import Catalogue, named, with_own
from unfog.agents.round import Considered, Decision, Offer
from unfog.agents.runner import Recent, Runner
from unfog.features import FeatureMap
from unfog.maths.arrays import Array, Bools, Ints
from unfog.simulation import MOST_SEED, MOST_TRIALS
from unfog.simulation.engines.numpy import BLOCK_ROUNDS, make_block
from unfog.simulation.job import Job, Nature, truth_draws
from unfog.simulation.player import to_reveal
from unfog.validation import InputError
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
        """Another arm was taken than was chosen."""
        place = np.asarray([arm])
        evidence = self.decision.evidence._replace(arm=place)
        self.arm, self.decision = arm, self.decision._replace(arm=place, evidence=evidence)


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
        shown: bool = True,
    ) -> None:
        """Of the problem it is told the laws and the kind of rewards, and nothing that was drawn.

        `features` are those of the trial, where actions are drawn: `Env.features`, or `features_of`. Unless
        true contexts are `shown`, agents that cannot learn without them are refused.
        """
        validation.offering("problem", problem, Problem, "a world, such as unfog.GaussianProblem()")
        validation.count("seed", seed, 0, MOST_SEED)
        validation.count("trial", trial, 0, MOST_TRIALS)
        self.problem = problem
        self.features = features_of(problem) if features is None else features
        self.agent = _row(agent, problem, self.features, shown)
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
        offer, who = self._offer(noisy, measured, time, arms), str(unit)
        self._again(who)
        normals = self._runner.draw()
        considered = self._runner.consider(who, offer, self.features)
        arm, shares = self._runner.choose(considered, normals, self._number)
        return self._taken(considered, arm, shares, who)

    def follow(
        self,
        noisy: Array,
        arm: int,
        *,
        measured: Array | None = None,
        unit: object = "",
        time: float | None = None,
    ) -> Choice:
        """A round whose arm somebody else has chosen; it is learnt from like any other."""
        offer, who = self._offer(noisy, measured, time, [arm]), str(unit)
        self._again(who)
        self._runner.draw()
        considered = self._runner.consider(who, offer, self.features)
        return self._taken(considered, arm, np.eye(self.problem.arms())[arm], who)

    def learn(self, choice: Choice, reward: float) -> None:
        """What the decision has earned."""
        validation.check_reward("reward", np.asarray(reward, float), self.problem.rewards.kind)
        choice.decision = self._runner.reward(choice.unit, choice.decision, float(reward))

    def reveal(self, choice: Choice, context: Array) -> None:
        """The true context (d,), not a number where it stays hidden; ignored by who learns from none."""
        validation.check_finite("context", np.asarray(context, float), gaps="hidden")
        if self.agent.sees_context:
            told = np.asarray(context, float)[None]
            choice.decision = self._runner.reveal(choice.unit, choice.decision, told)

    def probabilities(self, noisy: Array, *, arms: Collection[int] | None = None, unit: object = "") -> Array:
        """The probability of each arm if `decide` were called now, (K,); nothing is drawn or learnt by it."""
        offer = self._offer(noisy, None, None, arms)
        return self._runner.probabilities(str(unit), offer, self.features, self._number)

    def _taken(self, considered: Considered, arm: int, shares: Array, unit: str) -> Choice:
        decision = self._runner.take(unit, considered, arm, self.features)
        choice = Choice(arm, float(shares[arm]), shares, unit, decision)
        self._number += 1
        self._recent.add(unit, choice)
        return choice

    def _again(self, unit: str) -> None:
        """Learn again from the round so many rounds ago, where the agent does."""
        past = self._recent.due(unit)
        if past is not None:
            past.decision = self._runner.revisit(unit, past.decision)

    def _offer(
        self, noisy: Array, measured: Array | None, time: float | None, arms: Collection[int] | None
    ) -> Offer:
        """A batch of one, checked."""
        given, dim = np.asarray(noisy, float), len(self.problem.knowledge().context_mean)
        if given.shape != (dim,):
            raise InputError("context", f"{given} of shape {given.shape}", f"{dim} numbers, nan where lost")
        validation.check_finite("context", given, gaps="lost")
        lost = np.isnan(given) if measured is None else np.isnan(given) | ~np.asarray(measured, bool)
        at = None if time is None else np.asarray([time], float)
        mask = (~lost[None]).astype(float) if lost.any() else None
        number = np.asarray(self._number)
        return Offer(given[None], mask, time=number, arms=self._among(arms), at=at)

    def _among(self, arms: Collection[int] | None) -> Array | None:
        if arms is None:
            return None
        number, among = self.problem.arms(), np.zeros((1, self.problem.arms()), bool)
        wanted = [validation.count("arm", arm, 0, number - 1) for arm in arms]
        if not wanted:
            raise InputError("arms", "none", f"one or more of 0 to {number - 1}")
        among[0, wanted] = True
        return None if among.all() else among


def features_of(problem: Problem, actions: Array | None = None) -> FeatureMap:
    """The map of a problem, a batch of one: of these actions (K, p), where a problem draws them."""
    wanted = problem.truth_draws()
    draws = {name: np.zeros((1, *draws.shape)) for name, draws in wanted.items()}
    if "actions" in wanted:
        shape, law = wanted["actions"].shape, wanted["actions"].law
        if actions is None:
            allowed = f"those of the trial, of shape {shape}: this problem draws them anew in every trial"
            raise InputError("actions", "missing", allowed)
        given = validation.numbers("actions", actions, f"numbers of shape {shape}")
        if given.shape != shape:
            raise InputError("actions", f"of shape {given.shape}", f"numbers of shape {shape}")
        draws["actions"] = given[None] if law == "normal" else (given[None] + 1) / 2
    return problem.truth(draws).features


def _row(agent: str | Agent, problem: Problem, features: FeatureMap, shown: bool) -> Agent:
    """The agent by its name, which can play this problem."""
    names, own = with_own([agent])
    known, kind = problem.knowledge(), problem.rewards.kind
    [row] = named(names, "agent", Catalogue(kind, own, known.beyond_moments))
    if row.can.see_bias is not None:
        raise InputError("agent", f"{row.name!r} is told the bias", "agents that go without: nobody tells it")
    partial = problem.partial or not shown
    refuse_misfit(row, known, features, rewards=kind, partial=partial, has_bias=problem.has_bias)
    return row


class Reading(NamedTuple):
    """What is known before a decision."""

    round: int  # from 0
    noisy: Array  # (d,)  the mean of contexts where a coordinate was lost
    measured: Bools | None  # (d,)  false where it was lost; None: nothing ever is
    unit: int | None  # whose context it is; None: there is one unit
    time: float | None  # None: the number of the round


class Shown(NamedTuple):
    """A true context that the problem shows."""

    round: int  # that it belongs to
    context: Array  # (d,)  not a number where a coordinate stays hidden


class Paid(NamedTuple):
    """What came of a decision."""

    reward: float
    regret: float
    shown: Shown | None  # which may be of an earlier round


class Episode:
    """One trial of a problem, from its first round on."""

    def __init__(self, problem: Problem, seed: int, trial: int = 0) -> None:
        """Before the first round."""
        refuse(problem)
        validation.count("seed", seed, 0, MOST_SEED)
        validation.count("trial", trial, 0, MOST_TRIALS)
        self.problem, self.number = problem, 0
        draws = truth_draws(seed, [trial], problem.truth_draws())
        self._truth = problem.truth(draws)
        self.features: FeatureMap = self._truth.features  # a batch of one trial
        self.actions = _vectors(problem, draws.get("actions"))
        self._job = Job(problem, (), np.asarray([BLOCK_ROUNDS]), np.asarray([], int), seed, decompose=False)
        self._nature = Nature(problem, seed, [trial])
        self._late = deque[Shown]()
        self._make()

    def _make(self) -> None:
        numbers = self.number + np.arange(BLOCK_ROUNDS)
        self._block = make_block(self._job, self._truth, *self._nature.next(BLOCK_ROUNDS), numbers)
        self._losses: Array | None = None  # (K, BLOCK)  of every arm, where they are asked for

    @property
    def _place(self) -> int:
        return self.number % BLOCK_ROUNDS

    def _emission(self) -> Emission:
        """What nature made of the round at hand, (1, ...)."""
        parts = self._block.emission[:-1]
        return Emission(*(None if x is None else x[:, self._place] for x in parts))  # type: ignore[arg-type]

    def reading(self) -> Reading:
        """What may be seen of the round at hand."""
        made = self._emission()
        measured = None if made.mask is None else made.mask[0] > 0
        unit = None if made.unit is None else int(made.unit[0])
        return Reading(
            self.number, made.noisy[0].copy(), measured, unit, None if made.at is None else float(made.at[0])
        )

    def pay(self, arm: int) -> Paid:
        """Take an arm; the next round is at hand then."""
        t, best = self._place, self._block.tables.paper.best[0, self._place]
        regret = best - self._block.tables.paper.values(np.full((1, BLOCK_ROUNDS), arm))[0, t]
        reward = self._rewards(np.asarray([[arm]]))[0]
        self._late.append(Shown(self.number, to_reveal(self._emission())[0]))
        shown = self._late.popleft() if len(self._late) > self.problem.late else None
        if shown is not None and np.isnan(shown.context).all():
            shown = None
        self.number += 1
        if self._place == 0:
            self._make()
        return Paid(float(reward), float(regret), shown)

    def every(self) -> tuple[Array, Array]:
        """What each arm would be paid in the round at hand, and its regret: (K,) each."""
        arms, paper = np.arange(self.problem.arms()), self._block.tables.paper
        if self._losses is None:
            worth = [paper.values(np.full((1, BLOCK_ROUNDS), arm))[0] for arm in arms]
            self._losses = paper.best[0] - np.stack(worth)
        return self._rewards(arms[None]), self._losses[:, self._place]

    def _rewards(self, arms: Ints) -> Array:
        """The rewards of arms (1, n) in the round at hand: (n,)."""
        scores = self._block.tables.true_context[0, self._place][arms]
        paid = self.problem.reward(scores, self._block.normals[:, self._place, None])
        validation.check_reward("problem.reward", paid, self.problem.rewards.kind)
        return paid[0]


def refuse(problem: Problem) -> None:
    """Complain of what is no world, and of one that waits to be asked."""
    validation.offering("problem", problem, Problem, "a world, such as unfog.GaussianProblem()")
    if problem.asked:
        raise InputError("problem.reveal", "asked", "random or every: here nobody can ask")


def _vectors(problem: Problem, drawn: Array | None) -> Array | None:
    """The numbers that tell arms apart, (K, p); None where an arm has a name alone."""
    if drawn is not None:
        uniform = problem.truth_draws()["actions"].law == "uniform"
        return 2 * drawn[0] - 1 if uniform else drawn[0]
    given = problem.actions if isinstance(problem, Synthetic | Recorded) else None
    return np.asarray(given, float) if np.ndim(given) == 2 else None  # type: ignore[arg-type]
