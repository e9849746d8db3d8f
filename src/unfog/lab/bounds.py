"""The bounds on regret beside the regret itself, of the same spec, and how fast both grow.

Every agent that has a bound is looked at in up to three ways:

    fixed   one run of the problem, over its rounds
    tied    Theorem 1 asks for lambda/sigma^2 <= d/T, so a longer horizon T needs a narrower prior: runs to
            T/16, T/8, ..., T whose prior has lambda times horizon as it is in the spec
    swept   where the spec sweeps a number: the regret of the last round over that number

Growth is the exponent b of y = a x^b: of regret with its jackknife error, of the bounds without one.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import stdtrit

from unfog.lab import sweep as sweeps
from unfog.lab.bounds_case import BOUNDED, bounded, case_of, side_by_side
from unfog.lab.prepare import Plan, prepare
from unfog.lab.run import Progress, play, quiet
from unfog.lab.spec import Spec, with_run
from unfog.maths.arrays import Array, Ints
from unfog.theory.bounds import Bound, exponent, slope
from unfog.theory.conditions import Case
from unfog.theory.regret import SPLIT, Estimate
from unfog.validation import InputError

POINTS, FIRST = 16, 10  # how many rounds a curve has, and the first of them
DECADE = 10  # growth over rounds is fitted from T/10 on: early rounds have a growth of their own
LAST = {"points": 1, "decompose": False}  # all that the other runs keep is the last regret
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


class Play(NamedTuple):
    """One run among several, ready to go, and its problem as the bounds see it."""

    x: float
    plan: Plan
    case: Case


class Plays(NamedTuple):
    """All that a study runs."""

    spec: Spec
    whole: Play
    tied: list[Play]
    swept: list[Play]


def quantile(trials: int) -> float:
    """How many standard errors make half a 95 % interval: Student's t, since trials may be few."""
    return float(stdtrit(trials - 1, 0.975))


def study(spec: Spec, workers: int = 1, progress: Progress = quiet) -> Study:
    """Run everything there is to look at."""
    return played(planned(spec, workers), progress)


def planned(spec: Spec, workers: int = 1) -> Plays:
    """The runs of a study, each prepared once; what has no bounds is refused before all else."""
    if spec.run.until is not None:  # its runs would differ in their trials
        raise InputError("run.until", spec.run.until, "nothing where bounds are looked at: run.trials")
    spec = with_run(spec, {"agents": bounded(spec)})
    whole = _play(spec, workers, spec.run.rounds, {"points": None, "decompose": True})
    # From here on with the defaults of the problem written out.
    spec = spec.model_copy(update={"problem": whole.plan.spec.problem})
    return Plays(spec, whole, _tied(spec, workers), _swept(spec, workers))


def _play(
    spec: Spec, workers: int, x: float, run: dict[str, Any], problem: Mapping[str, Any] | None = None
) -> Play:
    """One of the runs, with fields of [run] and of [problem] changed."""
    fields = {**spec.problem, **(problem or {})}
    told = {"problem": fields, "run": spec.run.model_copy(update=run), "sweep": {}}
    plan = prepare(spec.model_copy(update=told), workers=workers)
    return Play(x, plan, case_of(plan.problems[0], spec.run.trials, spec.run.seed))


def _tied(spec: Spec, workers: int) -> list[Play]:
    """The horizons of Theorem 1's agents, each with the prior it may have."""
    agents = [name for name in spec.run.agents if BOUNDED[name].theorem == 1]
    horizons = sorted({max(1, round(spec.run.rounds / share)) for share in SHARES})
    if not agents or len(horizons) < 2:
        return []
    found = []
    for h in horizons:
        prior = np.multiply(spec.problem["prior_cov"], spec.run.rounds / h).tolist()
        found.append(_play(spec, workers, h, LAST | {"rounds": h, "agents": agents}, {"prior_cov": prior}))
    return found


def _swept(spec: Spec, workers: int) -> list[Play]:
    """A run for each value of the field that is swept, where it is one, and a number."""
    if len(sweeps.fields(spec.sweep)) != 1:
        return []
    [(field, values)] = sweeps.values(spec.sweep).items()
    if not sweeps.numeric(values) or min(values) <= 0 or len(values) < 2:
        return []
    return [_play(spec, workers, v, LAST, {field: v}) for v in sorted(values)]


def played(plays: Plays, progress: Progress = quiet) -> Study:
    """Run them, with one count of the agent-rounds done."""
    spec, every = plays.spec, [plays.whole, *plays.tied, *plays.swept]
    total, done, found = sum(one.plan.work.total for one in every), 0, []
    for one in every:
        found.append((one, play(one.plan, _onwards(progress, done, total))))
        done += one.plan.work.total
    tied, swept = found[1 : 1 + len(plays.tied)], found[1 + len(plays.tied) :]
    return Study(
        spec,
        _over_rounds(spec, plays.whole.case, found[0][1]),
        _over_runs("horizon", tied) if tied else None,
        _over_runs(sweeps.fields(spec.sweep)[0], swept) if swept else None,
    )


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


def _over_runs(axis: str, ends: Sequence[tuple[Play, xr.Dataset]]) -> Panel:
    """The last regret of several runs."""
    points, found = np.array([float(one.x) for one, _ in ends]), []
    for name in ends[0][0].plan.spec.run.agents:
        regret = np.stack([data["regret"].sel(agent=name).values[:, -1] for _, data in ends], 1)
        each = [BOUNDED[name].bounds(one.case, one.plan.spec.run.rounds) for one, _ in ends]
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
