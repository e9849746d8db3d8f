"""An agent in coba's experiments (M. Rucker and others, *COBA*, a benchmark for contextual bandits).

    experiment = coba.Experiment(
        [CobaEnvironment(problem, rounds=500, trial=t) for t in range(20)],
        [CobaLearner("unfog", problem), coba.LinUCBLearner()],
        CobaRegret(),
    )

coba has no way to hand a learner a true context after its reward, or the time of a reading. Agents that
cannot do without true contexts are refused, and those that know of time take rounds for it. Environments,
logs and regret are in adapters/coba_worlds.py.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from unfog import validation
from unfog._extras import explained
from unfog.adapters import by_name
from unfog.adapters.agent import Choice, Decider, features_of
from unfog.adapters.coba_worlds import CobaEnvironment, CobaLog, CobaRegret
from unfog.agents.agent import Agent
from unfog.maths.arrays import Array
from unfog.validation import InputError
from unfog.worlds.problem import Problem

with explained("unfog.adapters.coba"):
    from coba.primitives import Learner

__all__ = ["CobaEnvironment", "CobaLearner", "CobaLog", "CobaRegret"]


class CobaLearner(Learner):  # type: ignore[misc]
    """An agent that is told the laws of a problem. Coordinates that are None or not a number were lost.

    Arms are told apart by their actions: `arms` in the order of the problem, or else those of the first
    interaction. Where a problem draws its actions, features are made of the actions that coba shows. Where
    contexts have names, `coordinates` are those names in the order of the problem; one that is missing in a
    context was lost.

    >>> import unfog
    >>> from unfog.adapters.coba import CobaLearner
    >>> problem = unfog.GaussianProblem(dim=2, actions=3, features="per_arm")
    >>> learner = CobaLearner("unfog", problem, seed=1)
    >>> sorted(learner.params)[:2]
    ['family', 'seed']
    """

    def __init__(
        self,
        agent: str | Agent,
        problem: Problem,
        *,
        arms: Sequence[Any] | None = None,
        coordinates: Sequence[Hashable] | None = None,
        seed: int = 0,
        trial: int = 0,
    ) -> None:
        """With the random numbers of this trial of this seed."""
        validation.offering("problem", problem, Problem, "a world, such as unfog.GaussianProblem()")
        self.agent, self.problem, self.arms = agent, problem, arms
        self.seed, self.trial = seed, trial
        dim = len(problem.knowledge().context_mean)
        self.coordinates = by_name.named("coordinates", coordinates, dim, "the problem")
        self._decider: Decider | None = None
        self._place: dict[Any, int] = {}
        if "actions" not in problem.truth_draws():  # refuse at once what can be refused at once
            Decider(agent, problem, seed=seed, trial=trial, shown=False)

    @property
    def params(self) -> Mapping[str, Any]:
        """What coba writes into its table of learners."""
        name = self.agent if isinstance(self.agent, str) else self.agent.name
        return {"family": name, "seed": self.seed}

    def predict(self, context: Any, actions: Sequence[Any]) -> tuple[Any, float, dict[str, Choice]]:
        """An action, its probability, and the decision, which coba hands back with the reward."""
        places = self._places(context, actions)
        choice = self._ready(actions).decide(self._numbers(context), arms=places)
        return actions[places.index(choice.arm)], choice.probability, {"choice": choice}

    def learn(  # the probability is coba's to pass on, and no agent of ours needs it
        self,
        context: Any,
        action: Any,
        reward: float,
        probability: float,  # noqa: ARG002
        choice: Choice | None = None,
    ) -> None:
        """What an action has earned; without a decision of ours it is one that somebody else took."""
        if choice is None:
            if self._decider is None and self.arms is None:
                raise InputError("arms", "missing", "the actions in order: coba shows a logged one alone")
            place = self._places(context, [action])[0]
            choice = self._ready([action]).follow(self._numbers(context), place)
        self._ready([action]).learn(choice, reward)

    def score(self, context: Any, actions: Sequence[Any], action: Any) -> float:
        """The probability with which `predict` would take an action."""
        places = self._places(context, actions)
        chances = self._ready(actions).probabilities(self._numbers(context), arms=places)
        return float(chances[self._places(context, [action])[0]])

    def _ready(self, actions: Sequence[Any]) -> Decider:
        """The agent, from its first interaction on."""
        if self._decider is None:
            shown = list(actions if self.arms is None else self.arms)
            drawn = "actions" in self.problem.truth_draws()
            features = features_of(self.problem, np.asarray(shown) if drawn else None)
            told = self.agent, self.problem, features
            self._decider = Decider(*told, seed=self.seed, trial=self.trial, shown=False)
        return self._decider

    def _places(self, context: Any, actions: Sequence[Any] | None) -> list[int]:
        """Which arms these actions are."""
        if context is None or actions is None:  # coba tries this to see what a learner can do
            raise InputError("context", context, "numbers, and a list of actions")
        if not self._place:
            named = [_hashable(action) for action in (actions if self.arms is None else self.arms)]
            if len(set(named)) != len(named) or len(named) != self.problem.arms():
                allowed = f"{self.problem.arms()} different ones: as many as the problem has"
                raise InputError("actions", named, allowed)
            self._place = {action: place for place, action in enumerate(named)}
        try:
            return [self._place[_hashable(action)] for action in actions]
        except KeyError as error:
            raise InputError("actions", error.args[0], f"{', '.join(map(str, self._place))}") from None

    def _numbers(self, context: Any) -> Array:
        """A noisy context of one number, of numbers in the order of the problem, or of numbers by name."""
        if isinstance(context, Mapping):
            return by_name.row(context, self.coordinates)
        several = isinstance(context, Iterable) and not isinstance(context, str)
        values = list(context) if several else [context]
        return by_name.row(dict(enumerate(values)), range(len(values)))


def _hashable(action: Any) -> Any:
    """Two actions that are equal, however coba has wrapped them, are one key."""
    if isinstance(action, Mapping):
        return frozenset((name, _hashable(value)) for name, value in action.items())
    return tuple(action) if isinstance(action, Sequence) and not isinstance(action, str) else action
