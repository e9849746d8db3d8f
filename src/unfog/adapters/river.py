"""An agent with the methods of river's contextual policies (J. Montiel and others, *River: machine learning
for streaming data in Python*).

    policy = RiverPolicy("unfog", problem, arms=["a", "b", "c"], coordinates=["heart_rate", "steps"])

A context is a dict of noisy readings; one that is missing, None or not a number was lost. Arms may be any
names, and any part of them may be offered. An update belongs to the first decision for that context that
still waits, at once or later; one for a context that was never decided on, or with another arm, is learnt
from all the same.

river's `bandit.evaluate` hands policies no context, so that no contextual policy can play in it, its own
LinUCB included. `evaluate` below is the same loop with contexts. `bandit.evaluate_offline` works as it is.
"""

import copy
import random
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from unfog import validation
from unfog._extras import explain_missing
from unfog.adapters.simulation import Choice, Decider
from unfog.adapters.wrap import Waiting, context_row, names_or_numbers
from unfog.agents.agent import Agent
from unfog.features import FeatureMap
from unfog.maths.arrays import Array
from unfog.validation import InputError, check_keywords
from unfog.worlds.problem import Problem

with explain_missing("unfog.adapters.river"):
    from river import stats
    from river.bandit.base import ArmID, ContextualPolicy

WAITING = 1000  # decisions whose rewards may still come; the oldest is forgotten


@check_keywords
class RiverPolicy(ContextualPolicy):
    """An agent that is told the laws of a problem.

    `arms` and `coordinates` are names, in the order of the problem; numbers from 0 unless told. `features`
    are those of the trial, where the problem draws its actions.

    >>> import unfog
    >>> from unfog.adapters.river import RiverPolicy
    >>> problem = unfog.GaussianProblem(dim=2, actions=3, features="per_arm")
    >>> policy = RiverPolicy("gaps", problem, arms=list("abc"), coordinates=["pulse", "steps"], seed=1)
    >>> policy.update("a", {"pulse": 1.4}, 0.7)  # an arm that somebody else chose; steps were lost
    >>> type(policy).__mro__[1].__name__  # whatever plays policies of river plays it
    'ContextualPolicy'
    """

    takes_gaps = True  # in contexts: `evaluate` asks

    def __init__(
        self,
        agent: str | Agent,
        problem: Problem,
        features: FeatureMap | None = None,
        arms: Sequence[ArmID] | None = None,
        coordinates: Sequence[Hashable] | None = None,
        reward_obj: Any = None,
        burn_in: int = 0,
        seed: int = 0,
        trial: int = 0,
    ) -> None:
        """Each clone starts anew, with the random numbers of this trial of this seed."""
        super().__init__(reward_obj=reward_obj, burn_in=burn_in)
        self.agent, self.problem, self.features = agent, problem, features
        self.arms, self.coordinates = arms, coordinates
        self.seed, self.trial = seed, trial
        self._decider = Decider(agent, problem, features, seed=seed, trial=trial, reveal=False)
        names = names_or_numbers("arms", arms, problem.arms(), "the problem")
        self._indices = {arm: index for index, arm in enumerate(names)}
        dim = len(problem.knowledge().context_mean)
        self._coordinates = names_or_numbers("coordinates", coordinates, dim, "the problem")
        self._waiting: Waiting[Choice] = Waiting(WAITING)

    def _pull(self, arm_ids: list[ArmID], context: dict[Any, Any]) -> ArmID:  # type: ignore[override]
        noisy, ids = self._read_context(context), list(arm_ids)
        choice = self._decider.decide(noisy, arms=[self._find_index(arm) for arm in ids])
        self._waiting.add(noisy, choice)
        return next(arm for arm in ids if self._find_index(arm) == choice.arm)

    def update(self, arm_id: ArmID, context: Mapping[Any, Any], *args: Any, **kwargs: Any) -> None:
        """The reward of an arm in a context; of what river passes on, it is the first."""
        noisy, index = self._read_context(context), self._find_index(arm_id)
        reward = next(iter([*args, *kwargs.values()]), None)
        if reward is None:
            raise InputError("reward", "missing", "a number")
        # Checked before the decision is taken out of its queue: after an error the reward may come again.
        validation.check_reward("reward", np.asarray(reward, float), self.problem.rewards.kind)
        choice = self._waiting.take(noisy)
        if choice is None:
            choice = self._decider.follow(noisy, index)
        choice.change_arm(index)  # the reading was observed already, whoever chose the arm
        self._decider.learn(choice, reward)
        super().update(arm_id, context, *args, **kwargs)  # type: ignore[no-untyped-call]

    def _find_index(self, arm: ArmID) -> int:
        if arm not in self._indices:
            raise InputError("arm", arm, ", ".join(map(str, self._indices)))
        return self._indices[arm]

    def _read_context(self, context: Mapping[Any, Any]) -> Array:
        if not isinstance(context, Mapping):
            raise InputError("context", context, "a dict of noisy readings by the name of the coordinate")
        return context_row(context, self._coordinates)


@runtime_checkable
class TakesGaps(Protocol):
    """A policy that declares whether a coordinate that was lost may be missing in its contexts."""

    takes_gaps: bool


def _context(observation: Any, measured: Any) -> dict[Any, Any]:
    """A context by the numbers of its coordinates, without those that were lost."""
    values = np.asarray(observation).tolist()
    return {name: value for name, value in enumerate(values) if measured is None or measured[name]}


@check_keywords
def evaluate(
    policies: Sequence[Any], env: Any, n_episodes: int = 20, seed: int | None = None
) -> Iterator[dict[str, Any]]:
    """The loop of river's `bandit.evaluate` with contexts: a row a step, policies in equal episodes.

    `env` is an environment of gymnasium whose observations are arrays; where it tells the regret of a step,
    so does the row. A coordinate that its `info` says was not measured is missing in the context of policies
    that take gaps (`takes_gaps`: ours, and those behind `wrap`). Others read there what the environment says.

    >>> import unfog
    >>> from unfog.adapters.gymnasium import Env
    >>> from unfog.adapters.river import RiverPolicy, evaluate
    >>> problem = unfog.GaussianProblem(dim=2, actions=3, features="per_arm")
    >>> policies, env = [RiverPolicy("unfog", problem)], Env(problem, rounds=5)
    >>> rows = list(evaluate(policies, env, n_episodes=2, seed=1))
    >>> len(rows)  # two episodes of five rounds
    10
    """
    rng = random.Random(seed)
    for episode in range(validation.count("n_episodes", n_episodes)):
        episode_seed = rng.randint(0, 2**32)
        for index, policy in enumerate(policies):
            world, player, total = copy.deepcopy(env), policy.clone(), stats.Sum()
            (observation, info), step, over = world.reset(seed=episode_seed), 0, False
            gaps = isinstance(player, TakesGaps) and player.takes_gaps
            while not over:
                context = _context(observation, info.get("measured") if gaps else None)
                arm = player.pull(list(range(world.action_space.n)), context)
                observation, reward, ended, cut, info = world.step(arm)
                player.update(arm, context, reward)
                total.update(reward)
                row = {"episode": episode, "step": step, "policy_idx": index, "arm": arm, "reward": reward}
                yield {**row, "reward_stat": total.get(), **{k: info[k] for k in ("regret",) if k in info}}
                step, over = step + 1, ended or cut
