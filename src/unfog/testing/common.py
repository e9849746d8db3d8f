"""What the checks share: a problem to try things on, and the rules that hold for every part."""

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np

from unfog.agents.assemble import check_part
from unfog.inputs import InputError
from unfog.maths.arrays import Array
from unfog.maths.streams import generator
from unfog.worlds.gaussian import GaussianProblem
from unfog.worlds.logistic import LogisticProblem

TRIALS, ROUNDS = 3, 6
CLOSE = 1e-9

COVS = {
    "context_mean": [0.8, -0.5],
    "context_cov": [[1.0, 0.5], [0.5, 2.0]],
    "noise_cov": [[0.7, -0.3], [-0.3, 0.4]],
    "bias_cov": [[1.5, 0.4], [0.4, 0.6]],
}


class ContractError(AssertionError):
    """A part breaks a rule; the message names both."""


def require(holds: object, who: str, rule: str) -> None:
    """Complain by name where a rule does not hold."""
    if not holds:
        raise ContractError(f"{who}: {rule}")


def problem(rewards: str = "gaussian", **changes: Any) -> GaussianProblem | LogisticProblem:
    """Two dimensions, five arms, nothing centred or isotropic."""
    told: dict[str, Any] = {"dim": 2, "actions": 5, **COVS, "prior_mean": 0.2, "prior_cov": 0.5, **changes}
    return LogisticProblem(**told) if rewards == "bernoulli" else GaussianProblem(**told, reward_var=0.7)


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
    who = f"{place} {part.name!r}"
    require(part.name and part.note, who, "needs a name and a note")
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
