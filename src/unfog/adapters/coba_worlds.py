"""Problems, logs and regret for coba's experiments.

`CobaEnvironment` is one trial of a problem as the lab plays it: contexts are the noisy ones, and the true
ones are nowhere in it. Its arms are tuples of numbers: their vectors, or unit vectors where an arm has a name
alone. Beside the reward of every arm an interaction has their regret, as `regrets`, which coba writes into
its results and shows to no learner; `CobaRegret` keeps that of the arm that was chosen.

`CobaLog` is a log of decisions (evaluation/log.py), for coba's own estimators of what a policy would earn.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from unfog import validation
from unfog._extras import explained
from unfog.adapters.episode import Episode, Reading
from unfog.evaluation.log import Log
from unfog.maths.arrays import Array
from unfog.validation import InputError
from unfog.worlds.problem import Problem

with explained("unfog.adapters.coba"):
    from coba.evaluators import SequentialCB
    from coba.primitives import Environment, LoggedInteraction, SimulatedInteraction

LOG = "a log, as unfog.evaluation.readers.read gives"
MARKS = (
    "True: lost coordinates are nan, for our agents; or False: they read the mean, for coba's own learners"
)


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
        """For so many rounds."""
        loses = Episode(problem, seed, trial).reading().measured is not None  # refuses what cannot be played
        if problem.several > 1:
            raise InputError("problem.units", problem.several, "1, or tell_units=False: coba knows no units")
        self.problem, self.rounds = problem, validation.count("rounds", rounds)
        if mark_lost is None and loses:
            raise InputError("mark_lost", "missing", MARKS)
        self.seed, self.trial = seed, trial
        self.mark_lost = mark_lost is not None and validation.flag("mark_lost", mark_lost)

    @property
    def params(self) -> dict[str, Any]:
        """What coba writes into its table of environments."""
        told = {"rounds": self.rounds, "seed": self.seed, "trial": self.trial}
        return {"env_type": "unfog", "problem": type(self.problem).__name__, **told}

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
            regrets, place = row.pop("regrets"), row.pop("actions").index(row["action"])
            yield {**row, "regret": regrets[place]}


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

    def __init__(self, log: Log) -> None:
        """Arms have their names. Of true contexts nothing is handed on."""
        if not isinstance(log, Log):
            raise InputError("log", validation.shown(log), LOG)
        self.log = log

    @property
    def params(self) -> dict[str, Any]:
        """What coba writes into its table of environments."""
        return {"env_type": "unfog log", "rounds": self.log.rounds, "source": self.log.source}

    def read(self) -> Iterator[Any]:
        """All rounds; where the log says which arms could be drawn, those are the actions."""
        log, support = self.log, self.log.support
        for t in range(log.rounds):
            might = range(len(log.arms)) if support is None else np.flatnonzero(support[t])
            actions = [log.arms[arm] for arm in might]
            taken, paid = log.arms[log.arm[t]], (float(log.reward[t]), float(log.probability[t]))
            yield LoggedInteraction(tuple(log.noisy[t].tolist()), taken, *paid, actions=actions)
