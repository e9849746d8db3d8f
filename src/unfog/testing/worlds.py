"""The contract of worlds: `check_world` tests any world against it."""

import pickle
from typing import Any

import numpy as np

from unfog.maths.arrays import Array
from unfog.simulation import play
from unfog.simulation.job import truth_draws
from unfog.testing.common import TRIALS, ContractError, require, same
from unfog.worlds.problem import Emission, Problem, Truth

ROUNDS = 5


def check_world(problem: Problem, agents: tuple[str, ...] = ("alg1", "naive")) -> None:
    """Raise ContractError, with the name of the world and the rule, if it breaks one.

    >>> import unfog
    >>> unfog.testing.check_world(unfog.GaussianProblem(dim=2, actions=3))  # all is well
    """
    who = f"world {type(problem).__name__}"
    _check_hash(who, problem)
    _check_knowledge(who, problem)
    emissions = _play_rounds(who, problem, range(TRIALS))
    for trial in range(TRIALS):
        alone = _play_rounds(who, problem, [trial])
        for one, other in zip(emissions, alone, strict=True):
            fits = same(one.context[trial], other.context[0]) and same(one.noisy[trial], other.noisy[0])
            require(fits, who, "a trial depends on the trials beside it")
    try:
        copy = pickle.loads(pickle.dumps(problem))  # noqa: S301
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ContractError(f"{who}: cannot be pickled ({error})") from None
    settings: dict[str, Any] = {"rounds": 20, "trials": TRIALS, "seed": 1}
    first, second = play(problem, agents, **settings), play(copy, agents, **settings)
    for name, values in first.values.items():
        require(np.isfinite(values).all(), who, f"its {name} is not finite")
        require((values == second.values[name]).all(), who, "a copy of it gives other numbers")
    if problem.rewards.kind == "gaussian" and problem.has_bias:
        steps = np.diff(first.values["regret"], axis=-1)
        require(steps.min() > -1e-9, who, "a round's regret is negative")


def _check_hash(who: str, problem: Problem) -> None:
    """Check that a world can be hashed: computed values are cached by it."""
    try:
        hash(problem)
    except TypeError as error:
        decorator = "@dataclass(frozen=True, kw_only=True, eq=False)"
        raise ContractError(f"{who}: cannot be hashed ({error}): write {decorator}") from None


def _check_knowledge(who: str, problem: Problem) -> None:
    known = problem.knowledge()
    d = known.context_mean.shape[0]
    for name in ("context_cov", "noise_cov", "bias_cov"):
        cov: Array = known._asdict()[name]
        require(cov.shape == (d, d), who, f"{name} has shape {cov.shape}, not {(d, d)}")
        require(np.linalg.eigvalsh(cov).min() > 0, who, f"{name} is not positive definite")
    kinds = problem.rewards.kind == "gaussian", known.reward_var is not None
    require(kinds[0] == kinds[1], who, "a reward_var is for Gaussian rewards, and for these alone")


def _play_rounds(who: str, problem: Problem, trials: Any) -> list[Emission]:
    """A few rounds of these trials; each is checked."""
    truth: Truth = problem.truth(truth_draws(3, trials, problem.truth_draws()))
    known, number = problem.knowledge(), len(trials)
    d, m = known.context_mean.shape[0], known.prior_mean.shape[0]
    require(truth.theta.shape == (number, m), who, f"theta has shape {truth.theta.shape}, not {(number, m)}")
    require(truth.features.size == m, who, f"{truth.features.size} features, and a prior for {m}")
    require(truth.features.arms == problem.arms(), who, "arms() is not how many arms the features have")
    width, emissions = problem.round_normals(), list[Emission]()
    draws = np.stack([np.random.default_rng(t).standard_normal((ROUNDS, width)) for t in trials])
    for t in range(ROUNDS):
        emission = problem.emit(truth, draws[:, t], np.asarray(t))
        shapes = emission.context.shape, emission.noisy.shape
        require(shapes == ((number, d),) * 2, who, f"contexts have shapes {shapes}, not {(number, d)}")
        require(np.isfinite(emission.noisy).all(), who, "a noisy context is not finite")
        _check_surroundings(who, problem, emission, emissions[-1] if emissions else None, t)
        reward = problem.reward(np.zeros(number), draws[:, t])
        require(
            reward.shape == (number,) and np.isfinite(reward).all(), who, "a reward is not a number a trial"
        )
        emissions.append(emission)
    return emissions


def _check_surroundings(
    who: str, problem: Problem, emission: Emission, last: Emission | None, number: int
) -> None:
    """Check a round's time, its unit, and what is revealed of its context."""
    trials, d = emission.context.shape
    if emission.at is not None:
        require(emission.at.shape == (trials,), who, f"times have shape {emission.at.shape}, not {(trials,)}")
        goes_back = last is not None and last.at is not None and (emission.at < last.at).any()
        require(np.isfinite(emission.at).all() and not goes_back, who, "time is not finite, or goes back")
    if emission.unit is not None:
        is_integer = emission.unit.shape == (trials,) and emission.unit.dtype.kind in "iu"
        is_valid = is_integer and ((emission.unit >= 0) & (emission.unit < problem.several)).all()
        require(is_valid, who, f"a round's unit is not a whole number from 0 to {problem.several - 1}")
    if problem.has_reveal_mask:
        revealed = problem.reveal_mask(np.full((trials, 1 + d), 0.5), np.asarray(number))
        fits = revealed is not None and revealed.shape in ((trials,), (trials, d))
        require(fits, who, "what is shown is not a number for each context, or for each coordinate")
