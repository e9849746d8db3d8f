"""The bounds on regret and the regret itself, for the same spec: how fast both grow, and the mismatch.

Every agent that has a bound is studied in up to three ways:

    fixed   one run of the problem, over its rounds
    tied    Theorem 1 asks for lambda/sigma^2 <= d/T, so a longer horizon T needs a narrower prior: runs to
            T/16, T/8, ..., T whose prior has lambda times horizon as it is in the spec
    swept   where the spec sweeps a number: the regret of the last round over that number

Growth is the exponent b of y = a x^b: of regret with its jackknife error, of the bounds without one.

The mismatch is the D_t of the paper's Lemma 1, measured: Algorithm 1 is played, and its posterior compared
with the true one. Trials are those of a run with the same seed: the same truth, contexts, rewards and
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
from unfog.lab.prepare import ExperimentPlan, prepare
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

TRIALS, CELLS, CONTEXTS = 1000, 1 << 22, 32  # at most so many to average a problem's features over
AT_RANDOM = "at random"

POINTS, FIRST = 16, 10  # rounds of a curve, and the first of them
DECADE = 10  # growth over rounds is fitted from T/10 on: early rounds have a growth of their own
LAST = {"points": 1, "decompose": False}  # the other runs store only the final regret
SHARES = (16, 8, 4, 2, 1)  # the horizons of `tied` are T over these

MISMATCH_CELLS = 1 << 24  # most numbers that the trials played side by side may store


class Bounded(NamedTuple):
    """The theorem that bounds an agent's regret, and what it needs to know of the agent."""

    called: str
    theorem: int
    denoiser: str

    def bounds(self, case: Case, horizon: object) -> dict[str, Bound]:
        """The theorem's versions and the bound on random choices; each says where its conditions hold."""
        theorem: Callable[..., Bound] = theorem_1 if self.theorem == 1 else theorem_2
        versions = {v: theorem(case, horizon, v, denoiser=self.denoiser, strict=False) for v in VERSIONS}
        return {**versions, AT_RANDOM: at_random(case, horizon, strict=False)}


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
    exponent: Estimate | None  # None with fewer than two points, or without regret
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
    """The results of a study."""

    spec: Spec
    fixed: Panel
    tied: Panel | None
    swept: Panel | None


class Play(NamedTuple):
    """One prepared run, and its problem as the bounds see it."""

    x: float
    plan: ExperimentPlan
    case: Case


class Plays(NamedTuple):
    """The runs of a study."""

    spec: Spec
    whole: Play
    tied: list[Play]
    swept: list[Play]


class Mismatch(NamedTuple):
    """D_t and its running sum, at some rounds."""

    rounds: Ints  # (points,)  t
    mean: Array  # (points,)  D_t
    se: Array  # (points,)  its standard error over trials
    ess: Array  # (points,)  the effective sample size of the worst trial
    total: Array  # (points,)  D_1 + ... + D_t
    total_se: Array  # (points,)  its standard error over trials, but for the interpolation


class Measured(NamedTuple):
    """The sum of D_t as it was measured, the bounds on it, and Lemma 1 with it in their place."""

    mismatch: Mismatch
    limits: dict[str, Array]  # at the same rounds, by version
    lemma: Bound
    trials: int


def study(spec: Spec, workers: int = 1, progress: Progress = quiet) -> Study:
    """Play the runs of a spec, and compare regret with the bounds in each of the three ways."""
    return play_study(plan_runs(spec, workers), progress)


def plan_runs(spec: Spec, workers: int = 1) -> Plays:
    """Prepare the runs of a study; a spec without bounds is refused first."""
    if spec.run.target_se is not None:  # its runs would have different numbers of trials
        raise InputError(
            "run.target_se", spec.run.target_se, "nothing where bounds are looked at: run.trials"
        )
    spec = with_run(spec, {"agents": agents_with_bound(spec)})
    full_run = _prepare_run(spec, workers, spec.run.rounds, {"points": None, "decompose": True})
    # From here on with the defaults of the problem written out.
    spec = spec.model_copy(update={"problem": full_run.plan.spec.problem})
    return Plays(spec, full_run, _prepare_tied(spec, workers), _prepare_swept(spec, workers))


def agents_with_bound(spec: Spec) -> list[str]:
    """The agents of a spec that have a bound."""
    names = [name for name in spec.run.agents if name in BOUNDED]
    if not names:
        raise InputError("run.agents", ", ".join(spec.run.agents), f"one or more of {', '.join(BOUNDED)}")
    return names


def _prepare_run(
    spec: Spec, workers: int, x: float, run: dict[str, Any], problem: Mapping[str, Any] | None = None
) -> Play:
    """Prepare one of the runs, with fields of [run] and of [problem] changed."""
    fields = {**spec.problem, **(problem or {})}
    changes = {"problem": fields, "run": spec.run.model_copy(update=run), "sweep": {}}
    plan = prepare(spec.model_copy(update=changes), workers=workers)
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
    averaged = range(max(1, min(trials, TRIALS, CELLS // cells)))
    truth = problem.truth(truth_draws(seed, averaged, problem.truth_draws()))
    if isinstance(truth.features, Linear):
        return linear_case(known, np.asarray(truth.features.matrices))
    return Case(known, problem.arms(), _feature_norm(problem, truth, averaged, seed))


def _feature_norm(problem: Problem, truth: Truth, trials: range, seed: int) -> float:
    """The root of the mean of max_a |phi(a, c)|^2, over these trials and some rounds of each."""
    normals = RoundDraws(seed, trials, "rounds", problem.round_normals()).next(CONTEXTS)
    largest = []
    for t in range(CONTEXTS):
        design = truth.features.at(problem.emit(truth, normals[:, t], np.asarray(t)).context)
        rows = (design.row(np.full(len(trials), arm)) for arm in range(problem.arms()))
        largest.append(np.max([np.vecdot(row, row) for row in rows], 0))
    return float(np.sqrt(np.mean(largest)))


def _prepare_tied(spec: Spec, workers: int) -> list[Play]:
    """Prepare a run for each horizon of Theorem 1's agents, with the prior that the theorem allows."""
    agents = [name for name in spec.run.agents if BOUNDED[name].theorem == 1]
    horizons = sorted({max(1, round(spec.run.rounds / share)) for share in SHARES})
    if not agents or len(horizons) < 2:
        return []
    runs = []
    for h in horizons:
        prior = np.multiply(spec.problem["prior_cov"], spec.run.rounds / h).tolist()
        runs.append(
            _prepare_run(spec, workers, h, LAST | {"rounds": h, "agents": agents}, {"prior_cov": prior})
        )
    return runs


def _prepare_swept(spec: Spec, workers: int) -> list[Play]:
    """Prepare a run for each value of the swept field, if there is one such field and it is numeric."""
    if len(sweeps.fields(spec.sweep)) != 1:
        return []
    [(field, values)] = sweeps.values(spec.sweep).items()
    if not sweeps.numeric(values) or min(values) <= 0 or len(values) < 2:
        return []
    return [_prepare_run(spec, workers, v, LAST, {field: v}) for v in sorted(values)]


def play_study(plays: Plays, progress: Progress = quiet) -> Study:
    """Play the runs of a study, with a single count of the agent-rounds done."""
    spec, runs = plays.spec, [plays.whole, *plays.tied, *plays.swept]
    total, done, results = sum(run.plan.work.total for run in runs), 0, []
    for run in runs:
        results.append((run, play(run.plan, _offset_progress(progress, done, total))))
        done += run.plan.work.total
    tied, swept = results[1 : 1 + len(plays.tied)], results[1 + len(plays.tied) :]
    return Study(
        spec,
        _round_panel(spec, plays.whole.case, results[0][1]),
        _run_panel("horizon", tied) if tied else None,
        _run_panel(sweeps.fields(spec.sweep)[0], swept) if swept else None,
    )


def _offset_progress(progress: Progress, before: int, everything: int) -> Progress:
    """The progress of one run, as part of the whole study."""

    def advance(done: int, total: int) -> None:  # noqa: ARG001
        progress(before + done, everything)

    return advance


def _round_panel(spec: Spec, case: Case, data: xr.Dataset) -> Panel:
    """The curves of a run at rounds evenly spaced in ln t."""
    indices = space_rounds(data["round"].values)
    rounds = data["round"].values[indices].astype(np.float64)
    growths = []
    for name in spec.run.agents:
        curves = data.sel(agent=name).isel(round=indices)
        losses = {loss: curves[loss].values for loss in ("regret", *SPLIT)}
        losses["ee"] = losses["ee1"] + losses["ee2"]
        is_late = rounds * DECADE >= spec.run.rounds
        growths.append(_growth(name, rounds, losses, BOUNDED[name].bounds(case, rounds), is_late))
    return Panel("round", growths)


def space_rounds(rounds: Ints) -> Ints:
    """The indices of about POINTS of these rounds, evenly spaced in ln t up to the last."""
    targets = np.geomspace(min(FIRST, rounds[-1]), rounds[-1], POINTS)
    return np.unique(np.abs(np.log(rounds)[:, None] - np.log(targets)).argmin(0))


def _run_panel(axis: str, ends: Sequence[tuple[Play, xr.Dataset]]) -> Panel:
    """The final regret of several runs."""
    points, growths = np.array([float(run.x) for run, _ in ends]), []
    for name in ends[0][0].plan.spec.run.agents:
        regret = np.stack([data["regret"].sel(agent=name).values[:, -1] for _, data in ends], 1)
        run_bounds = [BOUNDED[name].bounds(run.case, run.plan.spec.run.rounds) for run, _ in ends]
        bounds = {version: side_by_side([run[version] for run in run_bounds]) for version in run_bounds[0]}
        growths.append(_growth(name, points, {"regret": regret}, bounds, points > 0))
    return Panel(axis, growths)


def side_by_side(bounds: Sequence[Bound]) -> Bound:
    """Bounds of several problems, each at one horizon, as one bound with an axis for the problems."""
    broken: dict[str, Condition] = {}
    for index, bound in enumerate(bounds):
        for condition in bound.broken:
            merged = broken.get(condition.asks, condition._replace(holds=np.ones(len(bounds), bool)))
            holds = merged.holds & ((np.arange(len(bounds)) != index) | condition.holds)
            broken[condition.asks] = merged._replace(holds=holds)
    first = bounds[0]
    parts = {name: np.stack([bound.parts[name] for bound in bounds]) for name in first.parts}
    horizon = np.stack([bound.horizon for bound in bounds])
    escape = max(bound.escape for bound in bounds)
    return Bound(first.name, first.version, horizon, parts, tuple(broken.values()), escape)


def _growth(
    agent: str, points: Array, losses: dict[str, Array], bounds: dict[str, Bound], fitted: NDArray[np.bool_]
) -> Growth:
    x, regret = points[fitted], losses["regret"][:, fitted]
    can_fit = len(x) > 1
    fit = exponent(x, regret) if can_fit and (regret.mean(0) > 0).all() else None
    totals = {kind: bound.total[fitted] for kind, bound in bounds.items()}
    slopes = {
        kind: float(slope(x, total)) if can_fit and (total > 0).all() else None
        for kind, total in totals.items()
    }
    return Growth(agent, points, losses, bounds, fitted, fit, slopes)


def measure_mismatch(spec: Spec, problem: Problem, trials: int, progress: Progress = quiet) -> Measured:
    """The mismatch of Algorithm 1 in some trials of a spec, whose problem this is."""
    if "alg1" not in spec.run.agents:
        raise InputError("mismatch", f"of {', '.join(spec.run.agents)}", "a spec with alg1")
    r = spec.run
    case = case_of(problem, r.trials, r.seed)
    mismatches = measure(
        problem, rounds=r.rounds, trials=count("mismatch", trials, 2), seed=r.seed, progress=progress
    )
    limits = {version: mismatch_sum(case, mismatches.rounds, version) for version in VERSIONS}
    lemma = lemma_1(case, mismatches.rounds, mismatch=np.maximum(mismatches.total, 0), strict=False)
    return Measured(mismatches, limits, lemma, trials)


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
    """D_t of Algorithm 1 up to round `rounds`; a quarter of a trial's particles locates the posterior."""
    size = _check_arguments(problem, rounds, trials, seed, points, particles)
    grid, divergences = grid_of(rounds, points), []
    batch = max(1, MISMATCH_CELLS // (rounds * problem.knowledge().context_mean.size * (size + 1)))
    progress(0, trials)
    with ThreadPoolExecutor(cores()) as pool:  # NumPy releases the GIL while it works
        for first in range(0, trials, batch):
            block = range(first, min(first + batch, trials))
            block_history = play_alg1(problem, rounds, block, seed)
            histories = (Rounds(*(part[i] for part in block_history)) for i in range(len(block)))
            rngs = (generator(seed, trial, "particles") for trial in block)
            task = partial(_divergence_curve, problem.knowledge(), grid, particles)
            for divergence in pool.map(task, histories, rngs):
                divergences.append(divergence)
                progress(len(divergences), trials)
    values, _, ess = np.moveaxis(np.array(divergences), -1, 0)
    return summary(grid, values, ess)


def _check_arguments(
    problem: Problem, rounds: int, trials: int, seed: int, points: int, particles: int
) -> int:
    """Check the arguments of `measure`; return the number of features."""
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
        problem = f"the features are {type(features).__name__}"
        raise InputError("problem", problem, "features linear in the context: product, matrix")
    return np.asarray(features.matrices)


def grid_of(rounds: int, points: int) -> Ints:
    """The rounds to look at: about evenly spaced in ln t, without the first unless it is all."""
    return np.unique(np.rint(np.geomspace(rounds, min(2, rounds), points)).astype(np.intp))


def play_alg1(problem: Problem, rounds: int, trials: range, seed: int) -> Rounds:
    """What Algorithm 1 has observed at its decision in the last round, all trials side by side."""
    matrices = matrices_of(problem.truth(truth_draws(seed, trials, problem.truth_draws())).features)
    matrices = np.broadcast_to(matrices, (len(trials), *matrices.shape[-3:]))
    all_trials = np.arange(len(trials))
    observed = [
        (decision.noisy, matrices[all_trials, decision.arm], decision.evidence.row(), decision.reward)
        for _, decision in played(problem, AGENTS["alg1"], rounds, trials, seed)
    ]
    noisy, *history = (np.stack(column, 1) for column in zip(*observed, strict=True))
    return Rounds(noisy, *(part[:, :-1] for part in history))


def _divergence_curve(
    known: Knowledge, grid: Ints, particles: int, observed: Rounds, rng: np.random.Generator
) -> list[Divergence]:
    """The divergence of one trial at the rounds of the grid."""
    shape = particles, len(known.prior_mean)
    return [mismatch.divergence(known, until(observed, t), rng.standard_normal(shape)) for t in grid]


def until(observed: Rounds, t: int) -> Rounds:
    """What one trial had observed at its decision in round t."""
    return Rounds(observed.noisy[:t], *(part[: t - 1] for part in observed[1:]))


def summary(grid: Ints, values: Array, ess: Array) -> Mismatch:
    """Means over trials of values (trials, points), and of their sums over all rounds."""
    log_rounds, knots = np.log(np.arange(1, grid[-1] + 1)), np.log(np.unique(np.append(grid, 1)))
    from_first = values if grid[0] == 1 else np.pad(values, ((0, 0), (1, 0)))
    totals = np.cumsum([np.interp(log_rounds, knots, row) for row in from_first], 1)[:, grid - 1]

    means, sums = (values.mean(0), standard_error(values)), (totals.mean(0), standard_error(totals))
    return Mismatch(grid, *means, ess.min(0), *sums)
