"""The bounds on regret beside the regret itself, of the same spec, how fast both grow, and the mismatch.

Every agent that has a bound is looked at in up to three ways:

    fixed   one run of the problem, over its rounds
    tied    Theorem 1 asks for lambda/sigma^2 <= d/T, so a longer horizon T needs a narrower prior: runs to
            T/16, T/8, ..., T whose prior has lambda times horizon as it is in the spec
    swept   where the spec sweeps a number: the regret of the last round over that number

Growth is the exponent b of y = a x^b: of regret with its jackknife error, of the bounds without one.

The mismatch is the D_t of the paper's Lemma 1, measured: Algorithm 1 is played, and its posterior held
against the true one. Trials are those of a run with the same seed: the same truth, contexts, rewards and
choices. At some rounds t, spaced evenly in ln t, theory/mismatch.py estimates KL(P_t || Pbar_t) of every
trial; D_t is the mean over the trials. Between these rounds a trial's divergence is taken to be linear in ln
t, starting from D_1 = 0, which is exact: before the first reward both posteriors are the prior. So sums over
t are sums over every round.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from unfog.agents.catalogue import AGENTS
from unfog.agents.choose import Thompson
from unfog.agents.denoise import Exact, PlugIn
from unfog.agents.learn import Conjugate
from unfog.channel.knowledge import Knowledge
from unfog.features import FeatureMap, Linear
from unfog.lab import sweep as sweeps
from unfog.lab.prepare import Plan, prepare
from unfog.lab.report import student_reach
from unfog.lab.run import Progress, play, quiet
from unfog.lab.spec import Spec, with_run
from unfog.maths.arrays import Array, Ints
from unfog.maths.random import RoundDraws, generator
from unfog.maths.statistics import Estimate, standard_error
from unfog.simulation import MOST_SEED
from unfog.simulation.executors.local import cores
from unfog.simulation.job import truth_draws
from unfog.simulation.player import played
from unfog.theory import mismatch
from unfog.theory.bounds import Bound, at_random, exponent, lemma_1, mismatch_sum, slope, theorem_1, theorem_2
from unfog.theory.conditions import Case, Condition, linear_case
from unfog.theory.information import VERSIONS
from unfog.theory.mismatch import Divergence, Rounds
from unfog.theory.regret import SPLIT
from unfog.validation import InputError, count
from unfog.worlds.problem import Problem, Truth

TRIALS, CELLS, CONTEXTS = 1000, 1 << 22, 32  # how much a problem's features are averaged over
AT_RANDOM = "at random"

POINTS, FIRST = 16, 10  # how many rounds a curve has, and the first of them
DECADE = 10  # growth over rounds is fitted from T/10 on: early rounds have a growth of their own
LAST = {"points": 1, "decompose": False}  # all that the other runs keep is the last regret
SHARES = (16, 8, 4, 2, 1)  # the horizons of `tied` are T over these

MISMATCH_CELLS = 1 << 24  # numbers that the trials played side by side may keep


class Bounded(NamedTuple):
    """What bounds an agent's regret."""

    called: str
    theorem: int
    denoiser: str

    def bounds(self, case: Case, horizon: object) -> dict[str, Bound]:
        """The theorem's versions, and what choosing at random obeys; all marked where they do not apply."""
        theorem: Callable[..., Bound] = theorem_1 if self.theorem == 1 else theorem_2
        found = {v: theorem(case, horizon, v, denoiser=self.denoiser, strict=False) for v in VERSIONS}
        return {**found, AT_RANDOM: at_random(case, horizon, strict=False)}


BOUNDED = {
    name: Bounded(row.label, 2 if row.sees_context else 1, row.denoiser.name)
    for name, row in AGENTS.items()
    if isinstance(row.denoiser, PlugIn | Exact) and (row.learner, row.chooser) == (Conjugate(), Thompson())
}


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
        return values.mean(0), student_reach(trials) * standard_error(values) if trials > 1 else None

    def interval(self) -> tuple[float, float | None] | None:
        """The exponent, and the half-width of its 95 % interval, where it has one."""
        if self.exponent is None:
            return None
        mean, se = self.exponent
        return mean, None if np.isnan(se) else student_reach(len(self.losses["regret"])) * se


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


class Mismatch(NamedTuple):
    """D_t and its sum, at some rounds."""

    rounds: Ints  # (points,)  t
    mean: Array  # (points,)  D_t
    se: Array  # (points,)  its standard error over trials
    ess: Array  # (points,)  the effective sample size of the worst trial
    total: Array  # (points,)  D_1 + ... + D_t
    total_se: Array  # (points,)  its standard error over trials, but for the interpolation


class Measured(NamedTuple):
    """The sum of D_t as it was measured, the bounds on it, and Lemma 1 with it in their place."""

    found: Mismatch
    limits: dict[str, Array]  # at the same rounds, by version
    lemma: Bound
    trials: int


def study(spec: Spec, workers: int = 1, progress: Progress = quiet) -> Study:
    """Run a spec in all ways that there are to look at it."""
    return play_study(planned(spec, workers), progress)


def planned(spec: Spec, workers: int = 1) -> Plays:
    """The runs of a study, each prepared once; what has no bounds is refused before all else."""
    if spec.run.until is not None:  # its runs would differ in their trials
        raise InputError("run.until", spec.run.until, "nothing where bounds are looked at: run.trials")
    spec = with_run(spec, {"agents": bounded(spec)})
    whole = _play(spec, workers, spec.run.rounds, {"points": None, "decompose": True})
    # From here on with the defaults of the problem written out.
    spec = spec.model_copy(update={"problem": whole.plan.spec.problem})
    return Plays(spec, whole, _tied(spec, workers), _swept(spec, workers))


def bounded(spec: Spec) -> list[str]:
    """The agents of a spec that have a bound."""
    chosen = [name for name in spec.run.agents if name in BOUNDED]
    if not chosen:
        raise InputError("run.agents", ", ".join(spec.run.agents), f"one or more of {', '.join(BOUNDED)}")
    return chosen


def _play(
    spec: Spec, workers: int, x: float, run: dict[str, Any], problem: Mapping[str, Any] | None = None
) -> Play:
    """One of the runs, with fields of [run] and of [problem] changed."""
    fields = {**spec.problem, **(problem or {})}
    told = {"problem": fields, "run": spec.run.model_copy(update=run), "sweep": {}}
    plan = prepare(spec.model_copy(update=told), workers=workers)
    return Play(x, plan, case_of(plan.problems[0], spec.run.trials, spec.run.seed))


def case_of(problem: Problem, trials: int, seed: int) -> Case:
    """The problem as the bounds see it, its features averaged over the trials of a run."""
    known = problem.knowledge()
    if problem.rewards.kind != "gaussian" or known.reward_var is None:
        raise InputError("problem", f"{problem.rewards.kind} rewards", "rewards with Gaussian noise")
    if known.prior_cov.ndim != 2:
        raise InputError("problem", "a prior made of blocks, one an arm", "theta ~ N(0, lambda I)")
    if not problem.has_bias:
        raise InputError("problem", "a world without a true bias", "one with a bias: kind = 'gaussian'")
    cells = problem.arms() * known.prior_mean.size * known.context_mean.size
    some = range(max(1, min(trials, TRIALS, CELLS // cells)))
    truth = problem.truth(truth_draws(seed, some, problem.truth_draws()))
    if isinstance(truth.features, Linear):
        return linear_case(known, np.asarray(truth.features.matrices))
    return Case(known, problem.arms(), _feature_norm(problem, truth, some, seed))


def _feature_norm(problem: Problem, truth: Truth, trials: range, seed: int) -> float:
    """The root of the mean of max_a |phi(a, c)|^2, over these trials and some rounds of each."""
    normals = RoundDraws(seed, trials, "rounds", problem.round_normals()).next(CONTEXTS)
    largest = []
    for t in range(CONTEXTS):
        design = truth.features.at(problem.emit(truth, normals[:, t], np.asarray(t)).context)
        rows = (design.row(np.full(len(trials), arm)) for arm in range(problem.arms()))
        largest.append(np.max([np.vecdot(row, row) for row in rows], 0))
    return float(np.sqrt(np.mean(largest)))


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


def play_study(plays: Plays, progress: Progress = quiet) -> Study:
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


def side_by_side(found: Sequence[Bound]) -> Bound:
    """Bounds of several problems, each at one horizon, as one bound with an axis for the problems."""
    broken: dict[str, Condition] = {}
    for place, bound in enumerate(found):
        for condition in bound.broken:
            held = broken.get(condition.asks, condition._replace(holds=np.ones(len(found), bool)))
            holds = held.holds & ((np.arange(len(found)) != place) | condition.holds)
            broken[condition.asks] = held._replace(holds=holds)
    first = found[0]
    parts = {name: np.stack([bound.parts[name] for bound in found]) for name in first.parts}
    horizon = np.stack([bound.horizon for bound in found])
    escape = max(bound.escape for bound in found)
    return Bound(first.name, first.version, horizon, parts, tuple(broken.values()), escape)


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


def measured(spec: Spec, problem: Problem, trials: int, progress: Progress = quiet) -> Measured:
    """The mismatch of Algorithm 1 in some trials of a spec, whose problem this is."""
    if "alg1" not in spec.run.agents:
        raise InputError("mismatch", f"of {', '.join(spec.run.agents)}", "a spec with alg1")
    r = spec.run
    case = case_of(problem, r.trials, r.seed)
    found = measure(
        problem, rounds=r.rounds, trials=count("mismatch", trials, 2), seed=r.seed, progress=progress
    )
    limits = {version: mismatch_sum(case, found.rounds, version) for version in VERSIONS}
    lemma = lemma_1(case, found.rounds, mismatch=np.maximum(found.total, 0), strict=False)
    return Measured(found, limits, lemma, trials)


def measure(
    problem: Problem,
    *,
    rounds: int,
    trials: int = 20,
    seed: int = 0,
    points: int = 8,
    particles: int = 2000,
    progress: Progress = quiet,
) -> Mismatch:
    """D_t of Algorithm 1 up to round `rounds`; of the particles of a trial, a quarter finds the posterior."""
    size = _checked(problem, rounds, trials, seed, points, particles)
    grid, found = grid_of(rounds, points), []
    side_by_side = max(1, MISMATCH_CELLS // (rounds * problem.knowledge().context_mean.size * (size + 1)))
    progress(0, trials)
    with ThreadPoolExecutor(cores()) as pool:  # NumPy lets go of the interpreter while it works
        for first in range(0, trials, side_by_side):
            piece = range(first, min(first + side_by_side, trials))
            seen = play_alg1(problem, rounds, piece, seed)
            each = (Rounds(*(part[i] for part in seen)) for i in range(len(piece)))
            sources = (generator(seed, trial, "particles") for trial in piece)
            task = partial(_curve, problem.knowledge(), grid, particles)
            for one in pool.map(task, each, sources):
                found.append(one)
                progress(len(found), trials)
    values, _, ess = np.moveaxis(np.array(found), -1, 0)
    return summary(grid, values, ess)


def _checked(problem: Problem, rounds: int, trials: int, seed: int, points: int, particles: int) -> int:
    """How many features there are, all being in order."""
    known = problem.knowledge()
    if problem.rewards.kind != "gaussian" or known.reward_var is None:
        raise InputError("problem", f"{problem.rewards.kind} rewards", "rewards with Gaussian noise")
    count("rounds", rounds, most=1_000_000)
    count("trials", trials, 2, 1_000_000)
    count("seed", seed, 0, MOST_SEED)
    count("points", points, most=1000)
    matrices_of(problem.truth(truth_draws(seed, [0], problem.truth_draws())).features)
    size = len(known.prior_mean)
    count("particles", particles, max(400, 40 * size), 10_000_000)
    return size


def matrices_of(features: FeatureMap) -> Array:
    """G(a) of every arm, (..., K, m, d), of a map phi(a, c) = G(a) c."""
    if not isinstance(features, Linear):
        found = f"the features are {type(features).__name__}"
        raise InputError("problem", found, "features linear in the context: product, matrix")
    return np.asarray(features.matrices)


def grid_of(rounds: int, points: int) -> Ints:
    """The rounds to look at: about evenly spaced in ln t, without the first unless it is all."""
    return np.unique(np.rint(np.geomspace(rounds, min(2, rounds), points)).astype(np.intp))


def play_alg1(problem: Problem, rounds: int, trials: range, seed: int) -> Rounds:
    """What Algorithm 1 has seen at its decision in the last round, all trials side by side."""
    matrices = matrices_of(problem.truth(truth_draws(seed, trials, problem.truth_draws())).features)
    matrices = np.broadcast_to(matrices, (len(trials), *matrices.shape[-3:]))
    every = np.arange(len(trials))
    shown = [
        (decision.noisy, matrices[every, decision.arm], decision.evidence.row(), decision.reward)
        for _, decision in played(problem, AGENTS["alg1"], rounds, trials, seed)
    ]
    noisy, *paid = (np.stack(kept, 1) for kept in zip(*shown, strict=True))
    return Rounds(noisy, *(part[:, :-1] for part in paid))


def _curve(
    known: Knowledge, grid: Ints, particles: int, seen: Rounds, source: np.random.Generator
) -> list[Divergence]:
    """The divergence of one trial at the rounds of the grid."""
    shape = particles, len(known.prior_mean)
    return [mismatch.divergence(known, until(seen, t), source.standard_normal(shape)) for t in grid]


def until(seen: Rounds, t: int) -> Rounds:
    """What one trial had seen at its decision in round t."""
    return Rounds(seen.noisy[:t], *(part[: t - 1] for part in seen[1:]))


def summary(grid: Ints, values: Array, ess: Array) -> Mismatch:
    """Means over trials of values (trials, points), and of their sums over all rounds."""
    every, knots = np.log(np.arange(1, grid[-1] + 1)), np.log(np.unique(np.append(grid, 1)))
    found = values if grid[0] == 1 else np.pad(values, ((0, 0), (1, 0)))
    totals = np.cumsum([np.interp(every, knots, one) for one in found], 1)[:, grid - 1]

    means, sums = (values.mean(0), standard_error(values)), (totals.mean(0), standard_error(totals))
    return Mismatch(grid, *means, ess.min(0), *sums)
