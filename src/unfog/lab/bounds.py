"""The bounds on regret beside the regret itself, of the same spec, and how fast both grow.

Every agent that has a bound is looked at in up to three ways:

    fixed   one run of the problem, over its rounds
    tied    Theorem 1 asks for lambda/sigma^2 <= d/T, so a longer horizon T needs a narrower prior: runs to
            T/16, T/8, ..., T whose prior has lambda times horizon as it is in the spec
    swept   where the spec sweeps a number: the regret of the last round over that number

Growth is the exponent b of y = a x^b: of regret with its jackknife error, of the bounds without one.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import stdtrit

from unfog.lab.bounds_case import BOUNDED, bounded, case_of, side_by_side
from unfog.lab.run import Progress, quiet, run, with_run
from unfog.lab.spec import Spec, build_problem
from unfog.maths.arrays import Array, Ints
from unfog.theory.bounds import Bound
from unfog.theory.conditions import Case
from unfog.theory.growth import exponent, slope
from unfog.theory.regret import SPLIT, Estimate

POINTS, FIRST = 16, 10  # how many rounds a curve has, and the first of them
DECADE = 10  # growth over rounds is fitted from T/10 on: early rounds have a growth of their own
SHARES = (16, 8, 4, 2, 1)  # the horizons of `tied` are T over these


class Growth(NamedTuple):
    """An agent's regret at some points, the bounds there, and the growth of both over the last of them."""

    agent: str
    points: Array  # (n,)  rounds, horizons or values of a field
    losses: dict[str, Array]  # (trials, n)  regret; cb, ee1, ee2 and ee = ee1 + ee2 where kept
    bounds: dict[str, Bound]  # printed, corrected, at random
    fitted: NDArray[np.bool_]  # (n,)  the points that the exponents are of
    exponent: Estimate | None  # None: of fewer than two points, or of no regret at all
    slopes: dict[str, float | None]  # the exponents of the bounds

    def band(self, loss: str = "regret") -> tuple[Array, Array | None]:
        """Mean over trials, and the half-width of its 95 % interval; a single trial has none."""
        values = self.losses[loss]
        trials = len(values)
        error = values.std(0, ddof=1) / np.sqrt(trials) if trials > 1 else None
        return values.mean(0), None if error is None else quantile(trials) * error

    def interval(self) -> tuple[float, float | None] | None:
        """The exponent, and the half-width of its 95 % interval, where it has one."""
        if self.exponent is None:
            return None
        mean, se = self.exponent
        return mean, None if np.isnan(se) else quantile(len(self.losses["regret"])) * se


class Panel(NamedTuple):
    """One way to look at growth."""

    axis: str  # "round", "horizon", or the field that is swept
    agents: list[Growth]


class Study(NamedTuple):
    """All that was found."""

    spec: Spec
    fixed: Panel
    tied: Panel | None
    swept: Panel | None


class _Play(NamedTuple):
    """One run among several."""

    x: float
    problem: dict[str, Any]
    rounds: int
    agents: list[str]


def quantile(trials: int) -> float:
    """How many standard errors make half a 95 % interval: Student's t, since trials may be few."""
    return float(stdtrit(trials - 1, 0.975))


def study(spec: Spec, workers: int = 1, progress: Progress = quiet) -> Study:
    """Run everything there is to look at, with one count of the agent-rounds done."""
    spec = with_run(spec, {"agents": bounded(spec)})
    r = spec.run
    case_of(build_problem(spec.problem), 1, r.seed)  # what has no bounds is refused before all else
    whole, tied, swept = _Play(r.rounds, spec.problem, r.rounds, r.agents), _tied(spec), _swept(spec)
    plays = [whole, *tied, *swept]
    cases = [case_of(build_problem(play.problem), r.trials, r.seed) for play in plays]
    total, done, found = sum(len(p.agents) * p.rounds for p in plays) * r.trials, 0, []
    for index, play in enumerate(plays):
        found.append(_run(spec, play, index == 0, workers, _onwards(progress, done, total)))
        done += len(play.agents) * play.rounds * r.trials
    ends = list(zip(plays, cases, found, strict=True))
    return Study(
        spec,
        _over_rounds(spec, cases[0], found[0]),
        _over_runs("horizon", ends[1 : 1 + len(tied)]) if tied else None,
        _over_runs(next(iter(spec.sweep)), ends[1 + len(tied) :]) if swept else None,
    )


def _tied(spec: Spec) -> list[_Play]:
    """The horizons of Theorem 1's agents, each with the prior it may have."""
    agents = [name for name in spec.run.agents if BOUNDED[name].theorem == 1]
    horizons = sorted({max(1, round(spec.run.rounds / share)) for share in SHARES})
    if not agents or len(horizons) < 2:
        return []
    priors = [np.multiply(spec.problem["prior_cov"], spec.run.rounds / h).tolist() for h in horizons]
    plays = zip(horizons, priors, strict=True)
    return [_Play(h, {**spec.problem, "prior_cov": prior}, h, agents) for h, prior in plays]


def _swept(spec: Spec) -> list[_Play]:
    """A run for each value of the field that is swept, where it is a number."""
    for field, values in spec.sweep.items():
        numbers = all(isinstance(v, int | float) and not isinstance(v, bool) and v > 0 for v in values)
        if numbers and len(values) > 1:
            r = spec.run
            return [_Play(v, {**spec.problem, field: v}, r.rounds, r.agents) for v in sorted(values)]
    return []


def _run(spec: Spec, play: _Play, split: bool, workers: int, progress: Progress) -> xr.Dataset:
    """One of the runs: all of its curves with their split, or the last regret alone."""
    told = {"rounds": play.rounds, "agents": play.agents, "points": None if split else 1, "decompose": split}
    settings = spec.run.model_copy(update=told)
    one = spec.model_copy(update={"problem": play.problem, "run": settings, "sweep": {}})
    return run(one, workers=workers, progress=progress)


def _onwards(progress: Progress, before: int, everything: int) -> Progress:
    """The progress of one run, as a piece of all."""

    def told(done: int, total: int) -> None:  # noqa: ARG001
        progress(before + done, everything)

    return told


def _over_rounds(spec: Spec, case: Case, data: xr.Dataset) -> Panel:
    """The curves of a run at rounds evenly spaced in ln t."""
    places = spaced(data["round"].values)
    rounds = data["round"].values[places].astype(np.float64)
    found = []
    for name in spec.run.agents:
        curves = data.sel(agent=name).isel(round=places)
        losses = {loss: curves[loss].values for loss in ("regret", *SPLIT)}
        losses["ee"] = losses["ee1"] + losses["ee2"]
        late = rounds * DECADE >= spec.run.rounds
        found.append(_growth(name, rounds, losses, BOUNDED[name].bounds(case, rounds), late))
    return Panel("round", found)


def spaced(rounds: Ints) -> Ints:
    """The places of about POINTS of these rounds, evenly spaced in their logarithms up to the last."""
    wanted = np.geomspace(min(FIRST, rounds[-1]), rounds[-1], POINTS)
    return np.unique(np.abs(np.log(rounds)[:, None] - np.log(wanted)).argmin(0))


def _over_runs(axis: str, ends: Sequence[tuple[_Play, Case, xr.Dataset]]) -> Panel:
    """The last regret of several runs."""
    points, found = np.array([float(play.x) for play, _, _ in ends]), []
    for name in ends[0][0].agents:
        regret = np.stack([data["regret"].sel(agent=name).values[:, -1] for _, _, data in ends], 1)
        each = [BOUNDED[name].bounds(case, play.rounds) for play, case, _ in ends]
        bounds = {kind: side_by_side([one[kind] for one in each]) for kind in each[0]}
        found.append(_growth(name, points, {"regret": regret}, bounds, points > 0))
    return Panel(axis, found)


def _growth(
    agent: str, points: Array, losses: dict[str, Array], bounds: dict[str, Bound], fitted: NDArray[np.bool_]
) -> Growth:
    x, regret = points[fitted], losses["regret"][:, fitted]
    fits = len(x) > 1
    found = exponent(x, regret) if fits and (regret.mean(0) > 0).all() else None
    totals = {kind: bound.total[fitted] for kind, bound in bounds.items()}
    slopes = {
        kind: float(slope(x, total)) if fits and (total > 0).all() else None for kind, total in totals.items()
    }
    return Growth(agent, points, losses, bounds, fitted, found, slopes)
