"""An agent of the catalogue on plain arrays, for loops that belong to somebody else.

    decide   a noisy context comes, an arm and its probability go
    learn    the reward of that decision comes, at once or later
    reveal   so does its true context, where it ever does

The round is that of agents/round.py, kept together by live/mind.py; nothing is decided or learnt here. The
random numbers are those that the lab gives the agent in this trial of this seed, so that an agent which is
fed a trial of the lab takes the arms that it takes there.
"""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from unfog import validation
from unfog.agents import round as rounds
from unfog.agents.agent import Agent, refuse_misfit
from unfog.agents.catalogue import Catalogue, named, with_own
from unfog.agents.round import Denoised, Offer
from unfog.features import FeatureMap
from unfog.live.mind import PROPENSITY_DRAWS, Mind, Seen
from unfog.maths.arrays import Array
from unfog.maths.random import generator
from unfog.simulation import MOST_SEED, MOST_TRIALS
from unfog.validation import InputError
from unfog.worlds.problem import Problem


@dataclass
class Choice:
    """A decision, to be handed back with its reward and its true context.

    >>> import unfog
    >>> from unfog.adapters.agent import Decider, features_of
    >>> problem = unfog.GaussianProblem(dim=2, actions=3, features="per_arm")
    >>> choice = Decider("unfog", problem, features_of(problem), seed=1).decide([0.4, -1.2])
    >>> choice.arm in range(3), round(float(choice.probabilities.sum()), 6)
    (True, 1.0)
    """

    arm: int
    probability: float
    probabilities: Array  # (K,)
    unit: str
    seen: Seen  # what the agent keeps of it; changes as more becomes known


class Decider:
    """One agent at one problem. A noisy coordinate that is not a number was lost.

    >>> import unfog
    >>> from unfog.adapters.agent import Decider, features_of
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
        self._mind = Mind(self.agent, problem.knowledge(), seed)
        self._mind.draws, self._mind.steps = (generator(seed, trial, what) for what in ("agent", "learner"))
        self._number, self._recent = 0, dict[str, deque[Choice]]()

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
        normals = self._mind.advance()
        considered = self._mind.consider(who, offer, self.features)
        arm, shares = self._mind.choose(considered, normals, self._number)
        belief = None if self.agent.looks_back is None else considered.view.belief
        denoised = Denoised(considered.reading, considered.view.context, belief)
        return self._kept(denoised, arm, shares, who)

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
        self._mind.advance()
        shares = np.eye(self.problem.arms())[arm]
        return self._kept(self._mind.denoise(who, offer, self.features), arm, shares, who)

    def learn(self, choice: Choice, reward: float) -> None:
        """What the decision has earned."""
        validation.check_reward("reward", np.asarray(reward, float), self.problem.rewards.kind)
        told = choice.unit, choice.seen, choice.arm, self.features, float(reward)
        choice.seen, _ = self._mind.reward(*told)

    def reveal(self, choice: Choice, context: Array) -> None:
        """The true context (d,), not a number where it stays hidden; ignored by who learns from none."""
        validation.check_finite("context", np.asarray(context, float), gaps="hidden")
        if self.agent.sees_context:
            told = choice.unit, choice.seen, choice.arm, self.features
            choice.seen = self._mind.reveal(*told, np.asarray(context, float)[None])

    def probabilities(self, noisy: Array, *, arms: Collection[int] | None = None, unit: object = "") -> Array:
        """With which probability `decide` would now take each arm, (K,); nothing is drawn or learnt by it."""
        mind, offer = self._mind, self._offer(noisy, None, None, arms)
        draws = generator(mind.seed, self._number, "propensity").standard_normal(
            (PROPENSITY_DRAWS, 1, mind.width)
        )
        told = self.agent, mind.setup, mind.memory(str(unit)), self.features
        return rounds.probabilities(*told, offer, draws)[0]

    def _kept(self, denoised: Denoised, arm: int, shares: Array, unit: str) -> Choice:
        seen = self._mind.observe(unit, denoised)
        choice = Choice(arm, float(shares[arm]), shares, unit, seen)
        self._number += 1
        if self.agent.revisits is not None:
            self._recent.setdefault(unit, deque()).append(choice)
        return choice

    def _again(self, unit: str) -> None:
        """Learn again from the round so many rounds ago, where the agent does."""
        recent = self._recent.get(unit, ())
        if self.agent.revisits is not None and len(recent) > self.agent.revisits[0].lag:
            past = self._recent[unit].popleft()
            past.seen = self._mind.revisit(unit, past.seen, past.arm, self.features)

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
    if row.privileged is not None:
        raise InputError("agent", f"{row.name!r} is told the bias", "agents that go without: nobody tells it")
    partial = problem.partial or not shown
    refuse_misfit(row, known, features, rewards=kind, partial=partial, has_bias=problem.has_bias)
    return row
