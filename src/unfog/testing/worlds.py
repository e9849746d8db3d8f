"""The contract of worlds: `check_world` runs it on any of them."""

import pickle
from typing import Any

import numpy as np

from unfog.maths.arrays import Array
from unfog.simulation import simulate
from unfog.simulation.job import truth_draws
from unfog.testing.common import TRIALS, ContractError, require, same
from unfog.worlds.problem import Emission, Problem, Truth

ROUNDS = 5


def check_world(problem: Problem, agents: tuple[str, ...] = ("alg1", "naive")) -> None:
    """Raise ContractError, by the name of the world and of the rule, where it breaks one.

    >>> import unfog
    >>> unfog.testing.check_world(unfog.GaussianProblem(dim=2, actions=3))  # all is well
    """
    who = f"world {type(problem).__name__}"
    _check_hash(who, problem)
    _check_knowledge(who, problem)
    whole = _rounds(who, problem, range(TRIALS))
    for trial in range(TRIALS):
        alone = _rounds(who, problem, [trial])
        for one, other in zip(whole, alone, strict=True):
            fits = same(one.context[trial], other.context[0]) and same(one.noisy[trial], other.noisy[0])
            require(fits, who, "a trial depends on the trials beside it")
    try:
        copy = pickle.loads(pickle.dumps(problem))  # noqa: S301
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ContractError(f"{who}: cannot be pickled ({error})") from None
    told: dict[str, Any] = {"rounds": 20, "trials": TRIALS, "seed": 1}
    first, second = simulate(problem, agents, **told), simulate(copy, agents, **told)
    for name, values in first.values.items():
        require(np.isfinite(values).all(), who, f"its {name} is not finite")
        require((values == second.values[name]).all(), who, "a copy of it gives other numbers")
    if problem.rewards.kind == "gaussian" and problem.has_bias:
        steps = np.diff(first.values["regret"], axis=-1)
        require(steps.min() > -1e-9, who, "a round's regret is negative")


def _check_hash(who: str, problem: Problem) -> None:
    """What is worked out for a world is kept by it."""
    try:
        hash(problem)
    except TypeError as error:
        wanted = "@dataclass(frozen=True, kw_only=True, eq=False)"
        raise ContractError(f"{who}: cannot be hashed ({error}): write {wanted}") from None


def _check_knowledge(who: str, problem: Problem) -> None:
    known = problem.knowledge()
    d = known.context_mean.shape[0]
    for name in ("context_cov", "noise_cov", "bias_cov"):
        cov: Array = known._asdict()[name]
        require(cov.shape == (d, d), who, f"{name} has shape {cov.shape}, not {(d, d)}")
        require(np.linalg.eigvalsh(cov).min() > 0, who, f"{name} is not positive definite")
    kinds = problem.rewards.kind == "gaussian", known.reward_var is not None
    require(kinds[0] == kinds[1], who, "a reward_var is for Gaussian rewards, and for these alone")


def _rounds(who: str, problem: Problem, trials: Any) -> list[Emission]:
    """A few rounds of these trials, each looked at."""
    truth: Truth = problem.truth(truth_draws(3, trials, problem.truth_draws()))
    known, number = problem.knowledge(), len(trials)
    d, m = known.context_mean.shape[0], known.prior_mean.shape[0]
    require(truth.theta.shape == (number, m), who, f"theta has shape {truth.theta.shape}, not {(number, m)}")
    require(truth.features.size == m, who, f"{truth.features.size} features, and a prior for {m}")
    require(truth.features.arms == problem.arms(), who, "arms() is not how many arms the features have")
    width, found = problem.round_normals(), list[Emission]()
    draws = np.stack([np.random.default_rng(t).standard_normal((ROUNDS, width)) for t in trials])
    for t in range(ROUNDS):
        emission = problem.emit(truth, draws[:, t], np.asarray(t))
        shapes = emission.context.shape, emission.noisy.shape
        require(shapes == ((number, d),) * 2, who, f"contexts have shapes {shapes}, not {(number, d)}")
        require(np.isfinite(emission.noisy).all(), who, "a noisy context is not finite")
        _check_surroundings(who, problem, emission, found[-1] if found else None, t)
        paid = problem.reward(np.zeros(number), draws[:, t])
        require(paid.shape == (number,) and np.isfinite(paid).all(), who, "a reward is not a number a trial")
        found.append(emission)
    return found


def _check_surroundings(
    who: str, problem: Problem, emission: Emission, last: Emission | None, number: int
) -> None:
    """When a round is, whose it is, and what will be shown of it."""
    trials, d = emission.context.shape
    if emission.at is not None:
        require(emission.at.shape == (trials,), who, f"times have shape {emission.at.shape}, not {(trials,)}")
        back = last is not None and last.at is not None and (emission.at < last.at).any()
        require(np.isfinite(emission.at).all() and not back, who, "time is not finite, or goes back")
    if emission.unit is not None:
        whole = emission.unit.shape == (trials,) and emission.unit.dtype.kind in "iu"
        inside = whole and ((emission.unit >= 0) & (emission.unit < problem.several)).all()
        require(inside, who, f"a round's unit is not a whole number from 0 to {problem.several - 1}")
    if problem.chosen:
        shown = problem.shown(np.full((trials, 1 + d), 0.5), np.asarray(number))
        fits = shown is not None and shown.shape in ((trials,), (trials, d))
        require(fits, who, "what is shown is not a number for each context, or for each coordinate")
