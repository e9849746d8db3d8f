"""Which bound an agent has, a problem as the bounds see it, and the mismatch of Lemma 1, measured."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from unfog.agents.catalogue import AGENTS
from unfog.agents.choose import Thompson
from unfog.agents.denoise import Exact, PlugIn
from unfog.agents.learn import Conjugate
from unfog.features import Linear
from unfog.lab.run import Progress, quiet
from unfog.lab.spec import Spec
from unfog.maths.arrays import Array
from unfog.maths.random import RoundDraws
from unfog.simulation.job import truth_draws
from unfog.theory.bounds import Bound, at_random, lemma_1, mismatch_sum, theorem_1, theorem_2
from unfog.theory.conditions import Case, Condition, linear_case
from unfog.theory.information import VERSIONS
from unfog.validation import InputError, count
from unfog.worlds.problem import Problem, Truth

if TYPE_CHECKING:
    from unfog.lab.mismatch import Mismatch

TRIALS, CELLS, CONTEXTS = 1000, 1 << 22, 32  # how much a problem's features are averaged over
AT_RANDOM = "at random"


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


def bounded(spec: Spec) -> list[str]:
    """The agents of a spec that have a bound."""
    chosen = [name for name in spec.run.agents if name in BOUNDED]
    if not chosen:
        raise InputError("run.agents", ", ".join(spec.run.agents), f"one or more of {', '.join(BOUNDED)}")
    return chosen


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


class Measured(NamedTuple):
    """The sum of D_t as it was measured, the bounds on it, and Lemma 1 with it in their place."""

    found: "Mismatch"
    limits: dict[str, Array]  # at the same rounds, by version
    lemma: Bound
    trials: int


def measured(spec: Spec, problem: Problem, trials: int, progress: Progress = quiet) -> Measured:
    """The mismatch of Algorithm 1 in some trials of a spec, whose problem this is."""
    from unfog.lab import mismatch

    if "alg1" not in spec.run.agents:
        raise InputError("mismatch", f"of {', '.join(spec.run.agents)}", "a spec with alg1")
    r = spec.run
    case = case_of(problem, r.trials, r.seed)
    found = mismatch.measure(
        problem, rounds=r.rounds, trials=count("mismatch", trials, 2), seed=r.seed, progress=progress
    )
    limits = {version: mismatch_sum(case, found.rounds, version) for version in VERSIONS}
    lemma = lemma_1(case, found.rounds, mismatch=np.maximum(found.total, 0), strict=False)
    return Measured(found, limits, lemma, trials)
