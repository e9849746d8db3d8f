"""The result of a plan, filled in piece by piece, in whatever order the pieces come."""

from typing import NamedTuple

import numpy as np

from unfog.maths.arrays import Array, Ints
from unfog.simulate.job import MOMENTS, Part
from unfog.simulate.plan import Plan
from unfog.simulate.tasks import Piece
from unfog.theory import regret


class Curves(NamedTuple):
    """Cumulative losses of every agent and trial at the stored rounds.

    Where trials are so many that single ones are stored coarsely, `mean` and `se` hold the mean over trials
    and its standard error at the rounds of `curve`; elsewhere they are empty.
    """

    agents: list[str]
    rounds: Ints  # (P,)
    values: dict[str, Array]  # name -> (agents, trials, P)
    curve: Ints  # (Q,)
    mean: dict[str, Array]  # name -> (agents, Q)
    se: dict[str, Array]  # name -> (agents, Q)
    engine: str
    why: str  # this engine
    seed: int


class Gathering:
    """One copy of all that is stored of a plan."""

    def __init__(self, work: Plan) -> None:
        """Room for everything; memory is taken as pieces come."""
        self._work, jobs = work, work.jobs
        shape = (len(jobs), len(jobs[0].agents), work.trials, len(jobs[0].grid))
        self._values = {name: np.empty(shape) for name in self._losses}
        for setting, job in enumerate(jobs):
            for name in set(self._losses) - set(job.losses):
                self._values[name][setting] = np.nan
        self._moments: list[dict[range, Part]] = [{} for _ in jobs]

    @property
    def _losses(self) -> list[str]:
        """Those of any setting: one may have a yardstick that others lack."""
        return list(dict.fromkeys(name for job in self._work.jobs for name in job.losses))

    def add(self, piece: Piece, part: Part) -> None:
        """Put a piece in its place."""
        setting, trials = piece
        for name in self._work.jobs[setting].losses:
            self._values[name][setting, :, trials.start : trials.stop] = part[name]
        self._moments[setting][trials] = {n: x for n, x in part.items() if n.startswith(MOMENTS)}

    def final(self, setting: int, name: str, trials: int) -> Array:
        """A loss after the last round, (agents, trials), of the first trials, whose pieces are there."""
        return self._values[name][setting, :, :trials, -1]

    def curves(self, setting: int, trials: int | None = None) -> Curves:
        """Those of one setting, of its first trials where so many are asked for; all pieces are there."""
        values = {n: self._values[n][setting, :, :trials] for n in self._work.jobs[setting].losses}
        return self._curves(values, *self._pooled(setting, trials))

    def together(self, trials: int | None = None) -> Curves:
        """Those of all settings, which are a first axis of every array; NaN for a loss that one lacks."""
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
        """The moments of all pieces of a setting, in their order, put together to means and errors."""
        job, parts = self._work.jobs[setting], self._moments[setting]
        ordered = sorted((r for r in parts if trials is None or r.stop <= trials), key=lambda r: r.start)
        mean, se = {}, {}
        for name in job.losses if len(job.curve) else ():
            counts, found = [len(r) for r in ordered], [parts[r][MOMENTS + name] for r in ordered]
            mean[name], se[name] = regret.pooled(counts, found)
        return mean, se

    def _curves(self, values: dict[str, Array], mean: dict[str, Array], se: dict[str, Array]) -> Curves:
        work, job = self._work, self._work.jobs[0]
        names = [agent.name for agent in job.agents]
        return Curves(names, job.grid, values, job.curve, mean, se, work.engine.name, work.reason, job.seed)
