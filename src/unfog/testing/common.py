"""What the checks share: a problem to play, and the rules that hold for every part."""

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np

from unfog.agents.agent import check_part
from unfog.maths.arrays import Array
from unfog.maths.random import generator
from unfog.validation import InputError
from unfog.worlds.problem import Draws, Problem, Truth
from unfog.worlds.synthetic import GaussianProblem, LogisticProblem

TRIALS, ROUNDS = 3, 6
CLOSE = 1e-9


class ContractError(AssertionError):
    """A part breaks a rule; the message names both.

    >>> import unfog
    >>> try:
    ...     unfog.testing.check_chooser(unfog.denoise.Exact())
    ... except unfog.testing.ContractError:
    ...     print("a denoiser is no chooser")
    a denoiser is no chooser
    """


def require(holds: object, who: str, rule: str) -> None:
    """Raise ContractError, with the name of the part and the rule, if the rule does not hold."""
    if not holds:
        raise ContractError(f"{who}: {rule}")


def problem(rewards: str = "gaussian", **changes: Any) -> GaussianProblem | LogisticProblem:
    """A problem with two dimensions by default and five arms, neither centred nor isotropic."""
    params: dict[str, Any] = {"dim": 2, "actions": 5, "prior_mean": 0.2, "prior_cov": 0.5}
    params |= _make_moments(changes.get("dim", 2)) | changes
    if rewards == "bernoulli":
        return LogisticProblem(**params)
    return GaussianProblem(**{"reward_var": 0.7} | params)


def _make_moments(dim: int) -> dict[str, Any]:
    """A mean that is not zero, and covariances with correlations and unequal variances."""
    index = np.arange(dim)
    sizes, distance = 1 + 0.5 * index, np.abs(index[:, None] - index)
    covs = {"context_cov": (1.0, 0.4), "noise_cov": (0.6, -0.5), "bias_cov": (0.9, 0.3)}
    matrices = {name: scale * np.outer(sizes, sizes) * rho**distance for name, (scale, rho) in covs.items()}
    return {"context_mean": 0.8 * (-0.6) ** index, **matrices}


def truth(world: Problem, trials: slice = slice(None)) -> Truth:
    """The truth of these trials, which does not depend on the others."""
    draws_by_name = world.truth_draws().items()
    return world.truth({name: _draw(name, draws)[trials] for name, draws in draws_by_name})


def _draw(name: str, draws: Draws) -> Array:
    shape = TRIALS, *draws.shape
    return normals(name, *shape) if draws.law == "normal" else freeze(generator(0, 0, name).random(shape))


def normals(purpose: str, *shape: int) -> Array:
    """Standard normals, always the same for a purpose; the array is read-only."""
    return freeze(generator(0, 0, purpose).standard_normal(shape))


def freeze(x: Any) -> Any:
    """Copy nested tuples of arrays as read-only arrays."""
    if isinstance(x, tuple):
        parts = [freeze(part) for part in x]
        return tuple(parts) if type(x) is tuple else type(x)(*parts)
    if isinstance(x, np.ndarray):
        x = x.copy()
        x.setflags(write=False)
    return x


def check_value(kind: str, part: Any) -> str:
    """Check that a part is a value: frozen, hashable, comparable, picklable, named. Return its label."""
    who = f"{kind} {type(part).__name__}"
    try:
        check_part("", kind, part)
    except InputError as error:
        raise ContractError(f"{who}: {error}") from None
    except AttributeError as error:
        raise ContractError(f"{who}: has no {error.name!r}: write it on the class") from None
    for field, text in (("name", part.name), ("note", part.note)):
        require(isinstance(text, str) and text, who, f"needs a {field}: a text on the class")
    who = f"{kind} {part.name!r}"
    try:
        copy = pickle.loads(pickle.dumps(part))  # noqa: S301
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ContractError(f"{who}: cannot be pickled ({error}): define its class in a module") from None
    require(copy == part and hash(copy) == hash(part), who, "does not equal itself after pickling")
    return who


def arrays(who: str, state: Any) -> Iterator[Array]:
    """Yield the arrays of a state; raise if it holds anything else."""
    if isinstance(state, tuple):
        for part in state:
            yield from arrays(who, part)
    elif state is not None:
        kind = type(state).__name__
        require(
            isinstance(state, np.ndarray | np.generic),
            who,
            f"a state is a tuple of arrays, and this one holds a {kind}",
        )
        yield state


def floats(who: str, state: Any) -> list[Array]:
    """The arrays of a state, which must be floats: compiled engines carry nothing else."""
    leaves = list(arrays(who, state))
    for array in leaves:
        require(array.dtype.kind == "f", who, f"a state holds an array of {array.dtype}; floats alone")
    return leaves


def same(one: Any, other: Any) -> bool:
    """Whether two arrays agree up to rounding; NaN equals NaN."""
    return bool(np.allclose(one, other, rtol=CLOSE, atol=CLOSE, equal_nan=True))


def writes_nothing(who: str, call: Any, *arguments: Any) -> Any:
    """Call a function with read-only arguments; raise ContractError if it writes into them."""
    try:
        return call(*freeze(arguments))
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        raise ContractError(f"{who}: writes into its arguments; functions here return new values") from None
