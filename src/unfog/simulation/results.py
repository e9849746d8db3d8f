"""The result of a plan, assembled from pieces in the order in which they come."""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array, Ints
from unfog.maths.statistics import Pool
from unfog.simulation.job import MOMENTS, Part, Piece
from unfog.simulation.plan import Plan


class Curves(NamedTuple):
    """Cumulative losses of every agent and trial at the stored rounds.

    If there are so many trials that single ones are stored coarsely, `mean` and `se` hold the mean over
    trials and its standard error at the rounds of `curve`; otherwise they are empty.

    >>> import unfog
    >>> from unfog.simulation import play
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> found = play(problem, ["unfog", "naive"], rounds=50, trials=4, seed=0)
    >>> found.agents, found.engine, found.seed
    (['unfog', 'naive'], 'numpy', 0)
    >>> int(found.rounds[-1]), sorted(found.values)[:3]
    (50, ['cb', 'ee1', 'ee2'])
    """

    agents: list[str]  # their names
    rounds: Ints  # (P,)  the stored ones, counted from 1
    values: dict[str, Array]  # of each loss: (agents, trials, P), summed up to the round
    curve: Ints  # (Q,)  rounds of the means
    mean: dict[str, Array]  # of each loss: (agents, Q)
    se: dict[str, Array]  # likewise
    engine: str  # that played
    why: str  # the reason for this engine
    seed: int  # as given, or as drawn


class Moments:
    """The moments of one setting, pooled in the order of trials; pieces that come early wait.

    Floating-point sums depend on their order: so it is the same, whichever piece is finished first.
    """

    def __init__(self, ends: Collection[int]) -> None:
        """`ends` are the numbers of trials for which the pooled moments are kept."""
        self._ends, self._next = ends, 0
        self._pool: dict[str, Pool] = {}
        self.early: dict[int, tuple[int, Part]] = {}  # first trial of a piece -> how many, and their moments
        self.after: dict[int, dict[str, Pool]] = {}  # number of trials -> moments pooled over so many

    def add(self, trials: range, part: Part) -> None:
        """Pool a piece, and those that waited for it; one that has to wait is copied to free its part."""
        waits = trials.start != self._next
        own = {n: x.copy() if waits else x for n, x in part.items() if n.startswith(MOMENTS)}
        self.early[trials.start] = len(trials), own
        while self._next in self.early:
            count, moments = self.early.pop(self._next)
            for name, group in moments.items():
                zero = np.zeros_like(group[..., 0])
                self._pool[name] = self._pool.get(name, Pool(0, zero, zero)).joined(count, group)
            self._next += count
            if self._next in self._ends:
                self.after[self._next] = self._pool.copy()


class Gathering:
    """The stored values of a plan, gathered from its pieces.

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
        """Allocate the arrays; the system provides the memory as pieces come."""
        self._plan, jobs = work, work.jobs
        shape = (len(jobs), len(jobs[0].agents), work.trials, len(jobs[0].grid))
        # The losses of all settings: some may have a loss that others lack.
        self._losses = list(dict.fromkeys(name for job in jobs for name in job.losses))
        self._values = {name: np.empty(shape) for name in self._losses}
        for setting, job in enumerate(jobs):
            for name in set(self._losses) - set(job.losses):
                self._values[name][setting] = np.nan
        self._moments = [Moments(work.ends) for _ in jobs]

    def add(self, piece: Piece, part: Part) -> None:
        """Store the values of a piece."""
        setting, trials = piece
        for name in self._plan.jobs[setting].losses:
            self._values[name][setting, :, trials.start : trials.stop] = part[name]
        self._moments[setting].add(trials, part)

    def final(self, setting: int, name: str, trials: int) -> Array:
        """A loss after the last round, (agents, trials), of the first trials; their pieces must be there."""
        return self._values[name][setting, :, :trials, -1]

    def curves(self, setting: int, trials: int | None = None) -> Curves:
        """The curves of one setting, of all or of its first trials; their pieces must be there.

        Fewer than all must be a number of trials after which the plan may end.
        """
        values = {n: self._values[n][setting, :, :trials] for n in self._plan.jobs[setting].losses}
        return self._make_curves(values, *self._read_moments(setting, trials))

    def together(self, trials: int | None = None) -> Curves:
        """The curves of all settings, as first axis of every array; NaN for a loss that a setting lacks."""
        first = self._plan.jobs[0]
        shape = (len(self._plan.jobs), len(first.agents), len(first.curve))
        losses = self._losses if len(first.curve) else []
        mean, se = ({name: np.full(shape, np.nan) for name in losses} for _ in range(2))
        for setting in range(len(self._plan.jobs)):
            for target, one in zip((mean, se), self._read_moments(setting, trials), strict=True):
                for name, values in one.items():
                    target[name][setting] = values
        return self._make_curves({n: x[:, :, :trials] for n, x in self._values.items()}, mean, se)

    def _read_moments(self, setting: int, trials: int | None) -> tuple[dict[str, Array], dict[str, Array]]:
        """The means and standard errors of a setting; empty if no moments are stored."""
        by_loss = self._moments[setting].after[self._plan.trials if trials is None else trials]
        pools = {name.removeprefix(MOMENTS): pool for name, pool in by_loss.items()}
        return {n: pool.mean for n, pool in pools.items()}, {n: pool.se for n, pool in pools.items()}

    def _make_curves(self, values: dict[str, Array], mean: dict[str, Array], se: dict[str, Array]) -> Curves:
        work, job = self._plan, self._plan.jobs[0]
        names = [agent.name for agent in job.agents]
        return Curves(names, job.grid, values, job.curve, mean, se, work.engine.name, work.reason, job.seed)
