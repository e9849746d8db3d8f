"""Agents, problems and logs in coba (M. Rucker and others, *COBA*, a benchmark for contextual bandits).

    experiment = coba.Experiment(
        [CobaEnvironment(problem, rounds=500, trial=t) for t in range(20)],
        [CobaLearner("unfog", problem), coba.LinUCBLearner()],
        CobaRegret(),
    )

`CobaEnvironment` is one trial of a problem as the lab plays it: contexts are the noisy ones, and the true
ones do not occur in it. Its arms are tuples of numbers: their vectors, or unit vectors if arms have only
names. Besides the reward of every arm an interaction has their regret, as `regrets`, which coba writes into
its results and shows to no learner; `CobaRegret` keeps that of the chosen arm.

`CobaLearner` is an agent. coba cannot hand a learner a true context after its reward, or the time of a
reading. Agents that need true contexts are refused, and those that use time count rounds instead.

`CobaLog` is a log of decisions (evaluation/log.py), for coba's own estimators of what a policy would earn.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from unfog import validation
from unfog._extras import explain_missing
from unfog.adapters.simulation import Choice, Decider, Episode, Reading, features_of
from unfog.adapters.wrap import context_row, names_or_numbers
from unfog.agents.agent import Agent
from unfog.evaluation.log import DecisionLog
from unfog.maths.arrays import Array
from unfog.validation import InputError, check_keywords
from unfog.worlds.problem import Problem

with explain_missing("unfog.adapters.coba"):
    from coba.evaluators import SequentialCB
    from coba.primitives import Environment, Learner, LoggedInteraction, SimulatedInteraction

__all__ = ["CobaEnvironment", "CobaLearner", "CobaLog", "CobaRegret"]
LOG = "a log, as unfog.evaluation.readers.read gives"
MARKS = (
    "True: lost coordinates are nan, for our agents; or False: they read the mean, for coba's own learners"
)


@check_keywords
class CobaEnvironment(Environment):  # type: ignore[misc]
    """One trial of a problem.

    Where the problem loses coordinates, `mark_lost` has to be told. With True a lost one is not a number, as
    `CobaLearner` wants it; with False it reads the mean of contexts, because coba's own learners cannot do
    without a number. coba has no way to tell each its own.

    >>> import unfog
    >>> from unfog.adapters.coba import CobaEnvironment
    >>> problem = unfog.GaussianProblem(dim=2, actions=3, features="per_arm")
    >>> len(list(CobaEnvironment(problem, rounds=5, seed=1).read()))
    5
    """

    def __init__(
        self,
        problem: Problem,
        *,
        rounds: int = 1000,
        seed: int = 0,
        trial: int = 0,
        mark_lost: bool | None = None,
    ) -> None:
        """Play `rounds` rounds of a trial."""
        loses = Episode(problem, seed, trial).reading().measured is not None  # refuses what cannot be played
        if problem.several > 1:
            raise InputError(
                "problem.units", problem.several, "1, or observe_units=False: coba knows no units"
            )
        self.problem, self.rounds = problem, validation.count("rounds", rounds)
        if mark_lost is None and loses:
            raise InputError("mark_lost", "missing", MARKS)
        self.seed, self.trial = seed, trial
        self.mark_lost = mark_lost is not None and validation.flag("mark_lost", mark_lost)

    @property
    def params(self) -> dict[str, Any]:
        """What coba writes into its table of environments."""
        settings = {"rounds": self.rounds, "seed": self.seed, "trial": self.trial}
        return {"env_type": "unfog", "problem": type(self.problem).__name__, **settings}

    def read(self) -> Iterator[Any]:
        """All rounds, the same each time."""
        episode = Episode(self.problem, self.seed, self.trial)
        vectors = np.eye(self.problem.arms()) if episode.actions is None else episode.actions
        actions = [tuple(row) for row in vectors.tolist()]
        for _ in range(self.rounds):
            context = tuple(self._context(episode.reading()).tolist())
            rewards, regrets = (values.tolist() for values in episode.every())
            yield SimulatedInteraction(context, actions, rewards, regrets=regrets)
            episode.pay(0)  # to the next round: what was chosen changes nothing in it

    def _context(self, reading: Reading) -> Array:
        if reading.measured is None or not self.mark_lost:
            return reading.noisy
        return np.where(reading.measured, reading.noisy, np.nan)


@check_keywords
class CobaRegret(SequentialCB):  # type: ignore[misc]
    """coba's plain evaluation, with the column `regret` beside `reward`: for environments of ours.

    >>> import coba
    >>> import unfog
    >>> from unfog.adapters.coba import CobaEnvironment, CobaLearner, CobaRegret
    >>> problem = unfog.GaussianProblem(dim=2, actions=3, features="per_arm")
    >>> world = CobaEnvironment(problem, rounds=5, seed=1)
    >>> rows = list(CobaRegret().evaluate(world, CobaLearner("unfog", problem, seed=1)))
    >>> all(row["regret"] >= 0 for row in rows)
    True
    """

    def __init__(self, seed: int | None = None) -> None:
        """The seed is for learners that leave the drawing of an action to coba."""
        super().__init__(record=["reward", "action", "actions", "probability"], seed=seed)

    def evaluate(self, environment: Any, learner: Any) -> Iterator[dict[str, Any]]:
        """A row a round."""
        for row in super().evaluate(environment, learner):
            regrets, index = row.pop("regrets"), row.pop("actions").index(row["action"])
            yield {**row, "regret": regrets[index]}


@check_keywords
class CobaLog(Environment):  # type: ignore[misc]
    """A log of decisions: noisy contexts, the arm that was drawn, its reward and its probability.

    >>> import numpy as np
    >>> import unfog
    >>> rng = np.random.default_rng(0)
    >>> steps, sent = rng.normal(7000, 2000, 1000), rng.integers(0, 2, 1000)
    >>> log = {
    ...     "steps": steps + rng.normal(-800, 1200, 1000),  # what was read
    ...     "arm": np.where(sent, "send", "wait"),
    ...     "reward": sent * np.where(steps < 6500, 0.5, -0.4) + rng.normal(0, 1, 1000),
    ... }
    >>> from unfog.adapters.coba import CobaLog
    >>> from unfog.lab.evaluate import read_log
    >>> kept = read_log(log, columns={"context": ["steps"]}, probability=0.5)
    >>> len(list(CobaLog(kept).read()))
    1000
    """

    def __init__(self, log: DecisionLog) -> None:
        """Arms are called by their names. True contexts are left out."""
        if not isinstance(log, DecisionLog):
            raise InputError("log", validation.display(log), LOG)
        self.log = log

    @property
    def params(self) -> dict[str, Any]:
        """What coba writes into its table of environments."""
        return {"env_type": "unfog log", "rounds": self.log.rounds, "source": self.log.source}

    def read(self) -> Iterator[Any]:
        """All rounds; where the log says which arms could be drawn, those are the actions."""
        log, support = self.log, self.log.support
        for t in range(log.rounds):
            possible = range(len(log.arms)) if support is None else np.flatnonzero(support[t])
            actions = [log.arms[i] for i in possible]
            name, paid = log.arms[log.arm[t]], (float(log.reward[t]), float(log.probability[t]))
            yield LoggedInteraction(tuple(log.noisy[t].tolist()), name, *paid, actions=actions)


@check_keywords
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
        validation.check_contract("problem", problem, Problem, "a world, such as unfog.GaussianProblem()")
        self.agent, self.problem, self.arms = agent, problem, arms
        self.seed, self.trial = seed, trial
        dim = len(problem.knowledge().context_mean)
        self.coordinates = names_or_numbers("coordinates", coordinates, dim, "the problem")
        self._decider: Decider | None = None
        self._index_of: dict[Any, int] = {}
        if "actions" not in problem.truth_draws():  # refuse at once what can be refused at once
            Decider(agent, problem, seed=seed, trial=trial, reveal=False)

    @property
    def params(self) -> Mapping[str, Any]:
        """What coba writes into its table of learners."""
        name = self.agent if isinstance(self.agent, str) else self.agent.name
        return {"family": name, "seed": self.seed}

    def predict(self, context: Any, actions: Sequence[Any]) -> tuple[Any, float, dict[str, Choice]]:
        """An action, its probability, and the decision, which coba hands back with the reward."""
        indices = self._find_indices(context, actions)
        choice = self._get_decider(actions).decide(self._read_context(context), arms=indices)
        return actions[indices.index(choice.arm)], choice.probability, {"choice": choice}

    def learn(  # the probability is coba's to pass on, and no agent of ours needs it
        self,
        context: Any,
        action: Any,
        reward: float,
        probability: float,  # noqa: ARG002
        choice: Choice | None = None,
    ) -> None:
        """Learn the reward of an action; without a `choice` it is one that somebody else took."""
        if choice is None:
            if self._decider is None and self.arms is None:
                raise InputError("arms", "missing", "the actions in order: coba shows a logged one alone")
            index = self._find_indices(context, [action])[0]
            choice = self._get_decider([action]).follow(self._read_context(context), index)
        self._get_decider([action]).learn(choice, reward)

    def score(self, context: Any, actions: Sequence[Any], action: Any) -> float:
        """The probability with which `predict` would take an action."""
        indices = self._find_indices(context, actions)
        chances = self._get_decider(actions).probabilities(self._read_context(context), arms=indices)
        return float(chances[self._find_indices(context, [action])[0]])

    def _get_decider(self, actions: Sequence[Any]) -> Decider:
        """The agent, which is made at the first interaction."""
        if self._decider is None:
            arms = list(actions if self.arms is None else self.arms)
            draws_actions = "actions" in self.problem.truth_draws()
            features = features_of(self.problem, np.asarray(arms) if draws_actions else None)
            arguments = self.agent, self.problem, features
            self._decider = Decider(*arguments, seed=self.seed, trial=self.trial, reveal=False)
        return self._decider

    def _find_indices(self, context: Any, actions: Sequence[Any] | None) -> list[int]:
        """The indices of the arms that these actions are."""
        if context is None or actions is None:  # coba tries this to see what a learner can do
            raise InputError("context", context, "numbers, and a list of actions")
        if not self._index_of:
            keys = [_hashable(action) for action in (actions if self.arms is None else self.arms)]
            if len(set(keys)) != len(keys) or len(keys) != self.problem.arms():
                allowed = f"{self.problem.arms()} different ones: as many as the problem has"
                raise InputError("actions", keys, allowed)
            self._index_of = {action: index for index, action in enumerate(keys)}
        try:
            return [self._index_of[_hashable(action)] for action in actions]
        except KeyError as error:
            raise InputError("actions", error.args[0], f"{', '.join(map(str, self._index_of))}") from None

    def _read_context(self, context: Any) -> Array:
        """A noisy context of one number, of numbers in the order of the problem, or of numbers by name."""
        if isinstance(context, Mapping):
            return context_row(context, self.coordinates)
        is_sequence = isinstance(context, Iterable) and not isinstance(context, str)
        values = list(context) if is_sequence else [context]
        return context_row(dict(enumerate(values)), range(len(values)))


def _hashable(action: Any) -> Any:
    """A key of an action: equal actions have equal keys, however coba has wrapped them."""
    if isinstance(action, Mapping):
        return frozenset((name, _hashable(value)) for name, value in action.items())
    return tuple(action) if isinstance(action, Sequence) and not isinstance(action, str) else action
