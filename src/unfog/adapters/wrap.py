"""Put our denoiser in front of a bandit that somebody else wrote.

    bandit = wrap(MAB(["heat", "wait"], LearningPolicy.LinTS()), denoiser)

What comes back has the verbs of its library, with the same arguments in the same order. Contexts go through
the denoiser on their way in: `libraries/contexts.py` says when, and how often. Every verb with contexts also
takes what is known about the reading: `noise_cov=`, how precise it is, and `groups=` (`group=` for one),
which device it comes from. In verbs with rows of contexts these are one for each row.

To denoise and then to regress on the result is called regression calibration, and for rewards linear in the
context it is exact: E[r | reading] = theta'E[c | reading]. Raymond J. Carroll, David Ruppert, Leonard A.
Stefanski and Ciprian M. Crainiceanu, *Measurement Error in Nonlinear Models*.

The library is found by the type of the bandit. None is imported here: who has a bandit has its library.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from unfog import validation
from unfog.adapters.libraries.contexts import REMEMBERED, Contexts, Denoises
from unfog.adapters.libraries.names import Names
from unfog.adapters.libraries.tables import Table
from unfog.validation import InputError

WAYS: dict[str, type[Table] | type[Names]] = {  # how the contexts of a library look
    "bayesianbandits": Table,
    "contextualbandits": Table,
    "mabwiser": Table,
    "river": Names,
    "vowpalwabbit": Names,
}
ALLOWED = f"a bandit of one of these libraries: {', '.join(WAYS)}"


def wrap(
    bandit: Any,
    denoiser: Denoises,
    *,
    as_is: Sequence[int | str] = (),
    names: Sequence[int | str] | None = None,
    actions: Sequence[int | str] | None = None,
    remember: int = REMEMBERED,
) -> Any:
    """The bandit, with the verbs of its library, and its contexts denoised on their way in.

    `denoiser` is fitted, or told everything; `as_is` are columns, or names, that were measured without error.
    Where contexts have names, `names` are those of the denoiser's columns in their order, unless it was
    fitted with names. `actions` are for Vowpal Wabbit alone. The latest `remember` decisions can still be
    rewarded.

    >>> from mabwiser.mab import MAB, LearningPolicy
    >>> from unfog.adapters import wrap
    >>> from unfog.adapters.sklearn import Denoiser
    >>> denoiser = Denoiser(noise_cov=1.0, context_mean=[0.0, 0.0], context_cov=1.0).fit([[0.0, 0.0]])
    >>> bandit = wrap(MAB(["heat", "wait"], LearningPolicy.LinUCB(), seed=0), denoiser)
    >>> bandit.fit(["heat", "wait"], [1.0, 0.2], [[1.5, 0.1], [-0.3, 0.8]])
    >>> bandit.predict([[1.2, 0.0]])
    'heat'
    """
    library = library_of(bandit)
    way = _way(library, Contexts(denoiser, remember), as_is, names)
    module = import_module(f"unfog.adapters.libraries.{library}")
    if library == "vowpalwabbit":
        return module.wrapped(bandit, way, () if actions is None else actions)
    if actions is not None:
        raise InputError(
            "actions", validation.shown(actions), f"nothing: a bandit of {library} knows its arms"
        )
    return module.wrapped(bandit, way)


def _way(library: str, contexts: Contexts, as_is: Any, names: Any) -> Table | Names:
    """In for contexts, as they look in this library."""
    if isinstance(as_is, str) or not isinstance(as_is, Sequence):
        raise InputError("as_is", validation.shown(as_is), "a list of columns or names")
    if WAYS[library] is Names:
        return Names(contexts, as_is, names)
    if names is not None:
        raise InputError("names", validation.shown(names), f"nothing: contexts of {library} are rows")
    return Table(contexts, as_is)


def library_of(bandit: object) -> str:
    """Where its class, or one that it inherits from, was written."""
    if isinstance(bandit, type):
        raise InputError("bandit", f"the class {bandit.__name__}", f"{ALLOWED}; of a class, an instance")
    homes = [kind.__module__.partition(".")[0] for kind in type(bandit).__mro__]
    found = [home for home in homes if home in WAYS]
    if not found:
        raise InputError("bandit", f"{type(bandit).__name__} of {homes[0]}", ALLOWED)
    return found[0]
