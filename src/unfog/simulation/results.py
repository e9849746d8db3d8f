"""The result of a plan, filled in piece by piece, in whatever order the pieces come."""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array, Ints
from unfog.maths.statistics import Pool
from unfog.simulation.job import MOMENTS, Part, Piece
from unfog.simulation.plan import Plan


class Curves(NamedTuple):
    """Cumulative losses of every agent and trial at the stored rounds.

    Where trials are so many that single ones are stored coarsely, `mean` and `se` hold the mean over trials
    and its standard error at the rounds of `curve`; elsewhere they are empty.

    >>> import unfog
    >>> from unfog.simulation import simulate
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> found = simulate(problem, ["unfog", "naive"], rounds=50, trials=4, seed=0)
    >>> found.agents, found.engine, found.seed
    (['unfog', 'naive'], 'numpy', 0)
    >>> int(found.rounds[-1]), sorted(found.values)[:3]
    (50, ['cb', 'ee1', 'ee2'])
    """

    agents: list[str]  # their names
    rounds: Ints  # (P,)  those stored, counted from 1
    values: dict[str, Array]  # of each loss: (agents, trials, P), summed up to the round
    curve: Ints  # (Q,)  rounds of the means
    mean: dict[str, Array]  # of each loss: (agents, Q)
    se: dict[str, Array]  # likewise
    engine: str  # that played
    why: str  # it was this engine, in words
    seed: int  # as told, or as drawn


class Moments:
    """The moments of one setting, pooled in the order of trials as pieces come; one that is early waits.

    Floating-point sums depend on their order: this one is the same whoever finishes first.
    """

    def __init__(self, ends: Collection[int]) -> None:
        """What is pooled is kept for each of these numbers of trials."""
        self._ends, self._next = ends, 0
        self._pool: dict[str, Pool] = {}
        self.early: dict[int, tuple[int, Part]] = {}  # first trial of a piece -> how many, and their moments
        self.after: dict[int, dict[str, Pool]] = {}  # trials -> what is pooled of the first so many

    def add(self, trials: range, part: Part) -> None:
        """Pool a piece, and those that waited for it; what waits is a copy, without what came with it."""
        waits = trials.start != self._next
        found = {n: x.copy() if waits else x for n, x in part.items() if n.startswith(MOMENTS)}
        self.early[trials.start] = len(trials), found
        while self._next in self.early:
            count, moments = self.early.pop(self._next)
            for name, group in moments.items():
                zero = np.zeros_like(group[..., 0])
                self._pool[name] = self._pool.get(name, Pool(0, zero, zero)).joined(count, group)
            self._next += count
            if self._next in self._ends:
                self.after[self._next] = self._pool.copy()


class Gathering:
    """One copy of all that is stored of a plan.

    >>> import unfog
    >>> from unfog.simulation import Gathering, plan
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> work = plan([problem], ["unfog"], rounds=20, trials=4, seed=0)
    >>> gathered = Gathering(work)
    >>> for task, parts in work.results(work.pieces, lambda rounds: None):
    ...     for piece, part in zip(task, parts, strict=True):
    ...         gathered.add(piece, part)
    >>> gathered.curves(0).values["regret"].shape
    (1, 4, 20)
    """

    def __init__(self, work: Plan) -> None:
        """Room for everything; memory is taken as pieces come."""
        self._work, jobs = work, work.jobs
        shape = (len(jobs), len(jobs[0].agents), work.trials, len(jobs[0].grid))
        # Those of any setting: one may have a yardstick that others lack.
        self._losses = list(dict.fromkeys(name for job in jobs for name in job.losses))
        self._values = {name: np.empty(shape) for name in self._losses}
        for setting, job in enumerate(jobs):
            for name in set(self._losses) - set(job.losses):
                self._values[name][setting] = np.nan
        self._moments = [Moments(work.ends) for _ in jobs]

    def add(self, piece: Piece, part: Part) -> None:
        """Put a piece in its place."""
        setting, trials = piece
        for name in self._work.jobs[setting].losses:
            self._values[name][setting, :, trials.start : trials.stop] = part[name]
        self._moments[setting].add(trials, part)

    def final(self, setting: int, name: str, trials: int) -> Array:
        """A loss after the last round, (agents, trials), of the first trials, whose pieces are there."""
        return self._values[name][setting, :, :trials, -1]

    def curves(self, setting: int, trials: int | None = None) -> Curves:
        """The curves of one setting, of its first trials where so many are asked for; all pieces are there.

        Fewer than all can only be asked for where the plan may end with so many.
        """
        values = {n: self._values[n][setting, :, :trials] for n in self._work.jobs[setting].losses}
        return self._curves(values, *self._pooled(setting, trials))

    def together(self, trials: int | None = None) -> Curves:
        """The curves of all settings, the first axis of every array; NaN for a loss that one lacks."""
        first = self._work.jobs[0]
        shape = (len(self._work.jobs), len(first.agents), len(first.curve))
        losses = self._losses if len(first.curve) else []
        mean, se = ({name: np.full(shape, np.nan) for name in losses} for _ in range(2))
        for setting in range(len(self._work.jobs)):
            for whole, one in zip((mean, se), self._pooled(setting, trials), strict=True):
                for name, found in one.items():
                    whole[name][setting] = found
        return self._curves({n: x[:, :, :trials] for n, x in self._values.items()}, mean, se)

    def _pooled(self, setting: int, trials: int | None) -> tuple[dict[str, Array], dict[str, Array]]:
        """The means and standard errors of a setting; none where no moments are kept."""
        found = self._moments[setting].after[self._work.trials if trials is None else trials]
        pools = {name.removeprefix(MOMENTS): pool for name, pool in found.items()}
        return {n: pool.mean for n, pool in pools.items()}, {n: pool.se for n, pool in pools.items()}

    def _curves(self, values: dict[str, Array], mean: dict[str, Array], se: dict[str, Array]) -> Curves:
        work, job = self._work, self._work.jobs[0]
        names = [agent.name for agent in job.agents]
        return Curves(names, job.grid, values, job.curve, mean, se, work.engine.name, work.reason, job.seed)
