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
        self._work = work
        self._values = [
            {n: np.empty((len(job.agents), work.trials, len(job.grid))) for n in job.losses}
            for job in work.jobs
        ]
        self._moments: list[dict[range, Part]] = [{} for _ in work.jobs]

    def add(self, piece: Piece, part: Part) -> None:
        """Put a piece in its place."""
        setting, trials = piece
        for name, values in self._values[setting].items():
            values[:, trials.start : trials.stop] = part[name]
        self._moments[setting][trials] = {n: x for n, x in part.items() if n.startswith(MOMENTS)}

    def final(self, setting: int, name: str, trials: int) -> Array:
        """A loss after the last round, (agents, trials), of the first trials, whose pieces are there."""
        return self._values[setting][name][:, :trials, -1]

    def curves(self, setting: int, trials: int | None = None) -> Curves:
        """Those of one setting, of its first trials where so many are asked for; all pieces are there."""
        job, parts = self._work.jobs[setting], self._moments[setting]
        ordered = sorted((r for r in parts if trials is None or r.stop <= trials), key=lambda r: r.start)
        mean, se = {}, {}
        for name in job.losses if len(job.curve) else ():
            counts, found = [len(r) for r in ordered], [parts[r][MOMENTS + name] for r in ordered]
            mean[name], se[name] = regret.pooled(counts, found)
        values = {name: x[:, :trials] for name, x in self._values[setting].items()}
        names, work = [agent.name for agent in job.agents], self._work
        return Curves(names, job.grid, values, job.curve, mean, se, work.engine.name, work.reason, job.seed)
