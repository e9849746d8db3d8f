"""What the checks share: a problem to try things on, and the rules that hold for every part."""

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
    """Complain by name where a rule does not hold."""
    if not holds:
        raise ContractError(f"{who}: {rule}")


def problem(rewards: str = "gaussian", **changes: Any) -> GaussianProblem | LogisticProblem:
    """Two dimensions unless told, five arms, nothing centred or isotropic."""
    told: dict[str, Any] = {"dim": 2, "actions": 5, "prior_mean": 0.2, "prior_cov": 0.5}
    told |= _laws(changes.get("dim", 2)) | changes
    return (
        LogisticProblem(**told) if rewards == "bernoulli" else GaussianProblem(**{"reward_var": 0.7} | told)
    )


def _laws(dim: int) -> dict[str, Any]:
    """A mean that is not zero, and covariances with other variances everywhere and correlations."""
    place = np.arange(dim)
    sizes, apart = 1 + 0.5 * place, np.abs(place[:, None] - place)
    covs = {"context_cov": (1.0, 0.4), "noise_cov": (0.6, -0.5), "bias_cov": (0.9, 0.3)}
    made = {name: scale * np.outer(sizes, sizes) * rho**apart for name, (scale, rho) in covs.items()}
    return {"context_mean": 0.8 * (-0.6) ** place, **made}


def truth(world: Problem, trials: slice = slice(None)) -> Truth:
    """The truth of these trials, the same whichever others are asked for."""
    wanted = world.truth_draws().items()
    return world.truth({name: _drawn(name, draws)[trials] for name, draws in wanted})


def _drawn(name: str, draws: Draws) -> Array:
    shape = TRIALS, *draws.shape
    return normals(name, *shape) if draws.law == "normal" else locked(generator(0, 0, name).random(shape))


def normals(purpose: str, *shape: int) -> Array:
    """Standard normals, always the same for a purpose; nothing may be written into them."""
    return locked(generator(0, 0, purpose).standard_normal(shape))


def locked(x: Any) -> Any:
    """Nested tuples of arrays that raise where they are written into."""
    if isinstance(x, tuple):
        parts = [locked(part) for part in x]
        return tuple(parts) if type(x) is tuple else type(x)(*parts)
    if isinstance(x, np.ndarray):
        x = x.copy()
        x.setflags(write=False)
    return x


def check_value(place: str, part: Any) -> str:
    """A part is a value: frozen, hashable, comparable, picklable, named. What to call it comes back."""
    who = f"{place} {type(part).__name__}"
    try:
        check_part("", place, part)
    except InputError as error:
        raise ContractError(f"{who}: {error}") from None
    except AttributeError as error:
        raise ContractError(f"{who}: has no {error.name!r}: write it on the class") from None
    for field, said in (("name", part.name), ("note", part.note)):
        require(isinstance(said, str) and said, who, f"needs a {field}: a text on the class")
    who = f"{place} {part.name!r}"
    try:
        copy = pickle.loads(pickle.dumps(part))  # noqa: S301
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ContractError(f"{who}: cannot be pickled ({error}): define its class in a module") from None
    require(copy == part and hash(copy) == hash(part), who, "does not equal itself after pickling")
    return who


def arrays(who: str, state: Any) -> Iterator[Array]:
    """The arrays of a state, which may hold nothing else."""
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
    """The arrays of a state that rounds hand on: floats, which is what compiled engines carry."""
    found = list(arrays(who, state))
    for array in found:
        require(array.dtype.kind == "f", who, f"a state holds an array of {array.dtype}; floats alone")
    return found


def same(one: Any, other: Any) -> bool:
    """Whether two arrays agree; what is not a number in one must be so in the other."""
    return bool(np.allclose(one, other, rtol=CLOSE, atol=CLOSE, equal_nan=True))


def writes_nothing(who: str, call: Any, *arguments: Any) -> Any:
    """What a function gives for arguments that must stay as they are."""
    try:
        return call(*locked(arguments))
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        raise ContractError(f"{who}: writes into its arguments; functions here return new values") from None
