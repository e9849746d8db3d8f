"""Put our denoiser in front of a bandit that somebody else wrote.

    bandit = wrap(MAB(["heat", "wait"], LearningPolicy.LinTS()), denoiser)

What comes back has the verbs of its library, with the same arguments in the same order. Contexts go through
the denoiser on their way in: `Contexts` says when, and how often. They are rows of numbers (`Table`) or
numbers by name (`Names`). Every verb with contexts also takes what is known about the reading: `noise_cov=`,
how precise it is, and `groups=` (`group=` for one), which device it comes from. In verbs with rows of
contexts these are one for each row.

To denoise and then to regress on the result is called regression calibration, and for rewards linear in the
context it is exact: E[r | reading] = theta'E[c | reading]. Raymond J. Carroll, David Ruppert, Leonard A.
Stefanski and Ciprian M. Crainiceanu, *Measurement Error in Nonlinear Models*.

The library is found by the type of the bandit. None is imported here: who has a bandit has its library.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from unfog import _table, validation
from unfog.maths.arrays import Array
from unfog.validation import InputError

COVARIANCE = "a variance, variances or a covariance of each row"
NUMBERS = "numbers, nan where a reading was lost"
REMEMBERED = 100_000
ORDER = "the names of what the denoiser denoises, in the order of its columns"
Named = dict[Any, Any]


class Denoises(Protocol):
    """What a denoiser can do; that of `unfog.adapters.sklearn` does it."""

    def transform(self, X: Array, /) -> Any:  # noqa: N803
        """Rows (n, d), each by itself."""

    def transform_one(self, x: Array, /) -> Any:
        """One reading (d,), in the order of time: denoise it, then learn from it about the sensor."""


class Said(NamedTuple):
    """What is said of a reading beside its numbers: how precise it is, and whose it is; None for nothing.

    The same numbers from another device, or with another precision, are another reading. What is said with a
    decision may be left out with its reward: then it is taken as it was said before.
    """

    noise_cov: Array | None  # (d, d)
    group: Any

    def key(self) -> tuple[bytes, str]:
        """Equal for what is equal, however it was written."""
        return b"" if self.noise_cov is None else self.noise_cov.tobytes(), repr(self.group)

    def agrees(self, before: "Said") -> bool:
        """Whether a decision of which this was said `before` can be meant."""
        mine, other = self.key(), before.key()
        same_noise = self.noise_cov is None or mine[0] == other[0]
        return same_noise and (self.group is None or mine[1] == other[1])

    def options(self) -> dict[str, Any]:
        """For `transform_one`."""
        return {name: value for name, value in self._asdict().items() if value is not None}


Item = TypeVar("Item")


class Waiting(Generic[Item]):
    """Decisions that wait for their rewards, in tools that have no name for a decision.

    Such a tool hands back the context with the reward, and nothing else. So a decision is kept under its
    reading. Equal readings, which are common where a sensor gives whole numbers, are served in the order of
    their decisions: first in, first out. A decision whose reward never comes stays first in its line until it
    is forgotten, which happens to the oldest of all when there are too many. This is the rule for all our
    adapters.
    """

    def __init__(self, most: int) -> None:
        """Keep so many in all, the latest."""
        self.most = validation.count("remember", most)
        # Ordered dictionaries give up their first item at once; plain ones search for it.
        self._reading: OrderedDict[int, bytes] = OrderedDict()
        self._lines: dict[bytes, OrderedDict[int, Item]] = {}
        self._number = 0

    def add(self, reading: Array, item: Item) -> None:
        """At the end of its line."""
        name = _name(reading)
        self._reading[self._number] = name
        self._lines.setdefault(name, OrderedDict())[self._number] = item
        self._number += 1
        if len(self._reading) > self.most:
            self._remove(next(iter(self._reading)))

    def line(self, reading: Array) -> Iterator[Item]:
        """The items that wait for this reading's reward, the first one first."""
        return iter(self._lines.get(_name(reading), {}).values())

    def take(self, reading: Array, fits: Callable[[Item], bool] = lambda _: True) -> Item | None:
        """The first that fits; it waits no longer."""
        for number, item in self._lines.get(_name(reading), {}).items():
            if fits(item):
                self._remove(number)
                return item
        return None

    def __len__(self) -> int:
        return len(self._reading)

    def _remove(self, number: int) -> None:
        name = self._reading.pop(number)
        del self._lines[name][number]
        if not self._lines[name]:
            del self._lines[name]


@dataclass(eq=False)
class Decision:
    """What a reading was taken for."""

    said: Said
    context: Array
    asked: bool = True  # about alone: nothing was decided yet

    def is_(self, other: "Decision") -> bool:
        """Equal numbers do not make one decision of two."""
        return self is other


# What to take for a reading of which this is said, and which is there so many times.
Choose = Callable[[Array, Said, int], Sequence[Decision | None]]


class Contexts:
    """Noisy contexts on their way into a bandit: denoised once, for the decision, and kept for its reward.

    The denoiser learns about the sensor as readings come in, so the same reading is denoised to another
    number later. A learner has to be given what was decided on, or it regresses rewards on numbers that
    nobody saw. So a decision's context goes through `transform_one` (predict, then observe), and what came
    out waits for the reward under the reading and what was said of it: first in, first out.

    A context that comes with a reward and does not wait, such as a row of an old log, goes through
    `transform`, together with all others of its kind. A verb that starts afresh from a whole history is given
    contexts that were learnt from before: for them, too, is kept what was decided on.
    """

    def __init__(self, denoiser: Denoises, remember: int = REMEMBERED) -> None:
        """Remember the latest so many decisions."""
        validation.offering(
            "denoiser", denoiser, Denoises, "a denoiser, such as unfog.adapters.sklearn.Denoiser"
        )
        self.denoiser = denoiser
        self.waiting: Waiting[Decision] = Waiting(remember)
        self.learnt: Waiting[Decision] = Waiting(remember)

    @contextmanager
    def deciding(self, rows: Array, noise_cov: Any = None, groups: Any = None) -> Iterator[Array]:
        """What to decide on, for readings (n, d) in the order of time; each is a decision of its own."""
        said = of_each(rows, noise_cov, groups)
        decisions = self._opened(rows, said, self._undecided)
        yield np.stack([one.context for one in decisions])
        # Where the bandit refused, they stay as if asked about, and the next attempt finds them.
        for one in decisions:
            one.asked = False

    def asking(self, rows: Array, noise_cov: Any = None, groups: Any = None) -> Array:
        """What to say scores of: the latest decisions on these readings, which wait, or those to come."""
        said = of_each(rows, noise_cov, groups)
        return np.stack([one.context for one in self._opened(rows, said, self._latest)])

    @contextmanager
    def learning(
        self, rows: Array, noise_cov: Any = None, groups: Any = None, *, afresh: bool = False
    ) -> Iterator[Array]:
        """What to learn from, for readings (n, d): what was decided on, or else what `transform` says."""
        said = of_each(rows, noise_cov, groups)
        found = _matched(rows, said, self._history if afresh else self._first)
        yield np.stack(self._filled(rows, said, found))
        for row, one in zip(rows, found, strict=True):  # only now: the bandit may have refused them
            if one is not None and self.waiting.take(row, one.is_):
                self.learnt.add(row, one)

    def _undecided(self, row: Array, said: Said, number: int) -> Sequence[Decision | None]:
        line = (one for one in self.waiting.line(row) if one.asked and one.said.key() == said.key())
        return list(islice(line, number))

    def _latest(self, row: Array, said: Said, number: int) -> Sequence[Decision | None]:
        return [one for one in self.waiting.line(row) if one.said.key() == said.key()][-number:]

    def _first(self, row: Array, said: Said, number: int) -> Sequence[Decision | None]:
        return list(islice((one for one in self.waiting.line(row) if said.agrees(one.said)), number))

    def _history(self, row: Array, said: Said, number: int) -> Sequence[Decision | None]:
        """What waits comes last in a history, and before it what was learnt from last."""
        waiting = self._first(row, said, number)
        past = [one for one in self.learnt.line(row) if said.agrees(one.said)]
        known = [*past[len(past) - min(number - len(waiting), len(past)) :], *waiting]
        return [*[None] * (number - len(known)), *known]

    def _opened(self, rows: Array, said: list[Said], choose: Choose) -> list[Decision]:
        """The decisions that are chosen, and new ones for the other rows."""
        found = _matched(rows, said, choose)
        contexts = self._filled(rows, said, found, one_by_one=True)
        decisions = []
        for row, told, one, context in zip(rows, said, found, contexts, strict=True):
            if one is None:
                one = Decision(told, context)
                self.waiting.add(row, one)
            decisions.append(one)
        return decisions

    def _filled(
        self, rows: Array, said: list[Said], found: list[Decision | None], *, one_by_one: bool = False
    ) -> list[Array]:
        """The contexts that were found; the rest is denoised, in time or all at once."""
        contexts = {place: one.context for place, one in enumerate(found) if one is not None}
        fresh = [place for place, one in enumerate(found) if one is None]
        if one_by_one:
            for place in fresh:
                denoised = self.denoiser.transform_one(rows[place], **said[place].options())
                contexts[place] = np.asarray(denoised, float).reshape(-1)
        else:
            for kind in {(said[p].noise_cov is None, said[p].group is None) for p in fresh}:
                alike = [p for p in fresh if (said[p].noise_cov is None, said[p].group is None) == kind]
                contexts |= zip(alike, self._transformed(rows[alike], [said[p] for p in alike]), strict=True)
        return [contexts[place] for place in range(len(rows))]

    def _transformed(self, rows: Array, said: list[Said]) -> Array:
        """Rows of which the same things are said, or nothing; with the names that the denoiser asks for."""
        options: dict[str, Any] = {}
        if said[0].noise_cov is not None:
            options["noise_cov"] = np.stack([one.noise_cov for one in said if one.noise_cov is not None])
        if said[0].group is not None:
            options["groups"] = np.array([one.group for one in said], object)  # 1 and "1" stay apart
        names = getattr(self.denoiser, "feature_names_in_", None)
        if names is None:
            return np.asarray(self.denoiser.transform(rows, **options), float)
        from pandas import DataFrame

        return np.asarray(self.denoiser.transform(DataFrame(rows, columns=names), **options), float)


class Table:
    """Contexts as rows of numbers, the way of mabwiser, contextualbandits and bayesianbandits.

    Columns named `as_is` reach the bandit as they are: a column of ones for the intercept, or what is known
    without error. The denoised columns stand where the noisy ones stood. A denoiser that says more than one
    number for each column (its mean and its spread, or draws) has the rest follow on the right.
    """

    def __init__(self, contexts: Contexts, as_is: Sequence[int | str]) -> None:
        """Say which columns pass as they are."""
        self.contexts = contexts
        self.as_is = [validation.count("as_is", column, least=0) for column in as_is]

    @contextmanager
    def deciding(self, field: str, value: object, noise_cov: Any, groups: Any) -> Iterator[Array]:
        """Rows to decide on."""
        rows, measured = self._split(field, value)
        with self.contexts.deciding(rows[:, measured], noise_cov, groups) as denoised:
            yield self._joined(rows, measured, denoised)

    def asking(self, field: str, value: object, noise_cov: Any, groups: Any) -> Array:
        """Rows to say scores of."""
        rows, measured = self._split(field, value)
        return self._joined(rows, measured, self.contexts.asking(rows[:, measured], noise_cov, groups))

    @contextmanager
    def learning(
        self, field: str, value: object, noise_cov: Any, groups: Any, *, afresh: bool = False
    ) -> Iterator[Array]:
        """Rows to learn from; `afresh`, they may have been learnt from before."""
        rows, measured = self._split(field, value)
        with self.contexts.learning(rows[:, measured], noise_cov, groups, afresh=afresh) as denoised:
            yield self._joined(rows, measured, denoised)

    def _split(self, field: str, value: object) -> tuple[Array, list[int]]:
        """The rows, and which of their columns were measured."""
        rows = readings(field, value)
        width = rows.shape[1]
        if any(column >= width for column in self.as_is) or len(set(self.as_is)) >= width:
            raise InputError("as_is", self.as_is, f"columns of a context that has {width}, not all of them")
        if np.isnan(rows[:, self.as_is]).any():
            raise InputError("contexts", "nan in a column that passes as it is", "nan in measured columns")
        return rows, [column for column in range(width) if column not in self.as_is]

    def _joined(self, rows: Array, measured: list[int], denoised: Array) -> Array:
        whole = rows.copy()
        whole[:, measured] = denoised[:, : len(measured)]
        return np.hstack([whole, denoised[:, len(measured) :]])


class Names:
    """Contexts as numbers by name, the way of river and of Vowpal Wabbit: {"temperature": 21.5, "rain": 0.2}.

    A denoiser has columns, and somebody has to say which name stands for which: `names=` of `wrap`, or the
    data frame that the denoiser was fitted with (`feature_names_in_`). Names 0, 1, 2 say it themselves. The
    order of names in a context says nothing about columns, so it is never used. A name that is missing, or
    stands for None or nan, is a reading that was lost. Names in `as_is` reach the bandit as they are. A
    denoiser that says more than one number for each name has the second as `temperature_2`, and so on.
    """

    def __init__(
        self, contexts: Contexts, as_is: Sequence[int | str], names: Sequence[Any] | None = None
    ) -> None:
        """Say which names pass as they are, and the order of the others."""
        self.contexts, self.as_is = contexts, list(as_is)
        self.names = [] if names is None else _checked(names, self.as_is, contexts.denoiser)

    @contextmanager
    def deciding(self, context: Any, noise_cov: Any, group: Any) -> Iterator[Named]:
        """A context to decide on."""
        known, row = self._split(context)
        with self.contexts.deciding(row, *_each(noise_cov, group)) as denoised:
            yield self._joined(known, denoised)

    @contextmanager
    def learning(self, context: Any, noise_cov: Any, group: Any) -> Iterator[Named]:
        """A context to learn from."""
        known, row = self._split(context)
        with self.contexts.learning(row, *_each(noise_cov, group)) as denoised:
            yield self._joined(known, denoised)

    def _split(self, context: Any) -> tuple[Named, Array]:
        """What passes as it is, and what was measured, as a row."""
        if not isinstance(context, Mapping):
            raise InputError(
                "context", validation.shown(context), "numbers by name, as in {'temperature': 21.5}"
            )
        known = {name: context[name] for name in self.as_is if name in context}
        measured = {name: value for name, value in context.items() if name not in known}
        # Asked for late: a denoiser may be fitted after it was put in front of a bandit.
        self.names = self.names or _found(self.contexts.denoiser, measured)
        return known, readings("context", [context_row(measured, self.names)])

    def _joined(self, known: Named, denoised: Array) -> Named:
        return known | {self._name(place): value for place, value in enumerate(denoised[0].tolist())}

    def _name(self, place: int) -> Any:
        again, which = divmod(place, len(self.names))
        return self.names[which] if again == 0 else f"{self.names[which]}_{again + 1}"


Way = TypeVar("Way")


class Wrapped(Generic[Way]):
    """A bandit of another library; a class for each library writes the verbs that take contexts anew."""

    def __init__(self, bandit: Any, way: Way) -> None:
        """Keep the bandit, not a copy of it, and the way in for contexts."""
        self.bandit, self.way = bandit, way

    def __getattr__(self, name: str) -> Any:
        """Everything else is the bandit's."""
        # A copy or a pickle asks before there is a bandit to ask.
        if name == "bandit" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.bandit, name)

    def __repr__(self) -> str:
        return f"wrap({self.bandit!r})"


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
    way: Any = _way(library, Contexts(denoiser, remember), as_is, names)
    from unfog.adapters import libraries

    if library == "vowpalwabbit":
        return libraries.wrap_vowpalwabbit(bandit, way, () if actions is None else actions)
    if actions is not None:
        raise InputError(
            "actions", validation.shown(actions), f"nothing: a bandit of {library} knows its arms"
        )
    return libraries.WRAPPERS[library](bandit, way)


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


def of_each(rows: Array, noise_cov: Any, groups: Any) -> list[Said]:
    """What is said of each of the rows; nothing said is said of each."""
    covs, labels = _one_each("noise_cov", noise_cov, rows), _one_each("groups", groups, rows)
    return [
        Said(_covariance(cov, rows.shape[1]), label.item() if isinstance(label, np.generic) else label)
        for cov, label in zip(covs, labels, strict=True)
    ]


def _one_each(field: str, value: Any, rows: Array) -> Sequence[Any]:
    if value is None:
        return [None] * len(rows)
    if not hasattr(value, "__len__") or len(value) != len(rows):
        raise InputError(field, validation.shown(value), f"one for each row, {len(rows)} of them")
    return list(value)


def _covariance(value: Any, dim: int) -> Array | None:
    """A covariance as a matrix: among rows, variances could be mistaken for one covariance of all."""
    if value is None:
        return None
    given = validation.numbers("noise_cov", value, COVARIANCE)
    if given.shape == (dim, dim):
        return given
    return np.diag(validation.vector("noise_cov", value, dim))


def _matched(rows: Array, said: list[Said], choose: Choose) -> list[Decision | None]:
    """A decision for each row, or None; equal rows get those that are chosen for them in their order."""
    alike: dict[Any, list[int]] = {}
    for place, (row, told) in enumerate(zip(rows, said, strict=True)):
        alike.setdefault((row.tobytes(), told.key()), []).append(place)
    found: dict[int, Decision] = {}
    taken: set[Decision] = set()  # by another row of the same numbers, of which less was said
    for places in alike.values():
        chosen = choose(rows[places[0]], said[places[0]], len(places))
        mine = {place: one for place, one in zip(places, chosen, strict=False) if one and one not in taken}
        taken.update(mine.values())
        found |= mine
    return [found.get(place) for place in range(len(rows))]


def _name(reading: Array) -> bytes:
    return _canonical(reading).tobytes()


def _canonical(reading: Array) -> Array:
    """A reading with equal bytes for equal numbers: there are many kinds of nan, and two zeros."""
    return np.where(np.isnan(reading), np.nan, reading + 0.0)


def readings(field: str, value: object) -> Array:
    """Rows of numbers (n, d); one context may come without its row."""
    allowed = f"rows of {NUMBERS}"
    return _canonical(_table.matrix(field, np.atleast_2d(_table.array(field, value, allowed)), allowed))


def names_or_numbers(field: str, names: Sequence[Hashable] | None, number: int, order: str) -> list[Hashable]:
    """So many names, all different; numbers from 0 where none are told."""
    found = list(range(number) if names is None else names)
    if isinstance(names, str) or len(found) != number or len(set(found)) != number:
        raise InputError(field, validation.shown(names), f"{number} different names, in the order of {order}")
    return found


def context_row(context: Mapping[Any, Any], names: Sequence[Hashable]) -> Array:
    """The numbers of a context (d,) in the order of these names; nan for one that is missing or None."""
    if unknown := [name for name in context if name not in names]:
        raise InputError("context", unknown[0], f"the names {', '.join(map(str, names))}")
    return np.array([_number(name, context.get(name)) for name in names], float)


def _number(name: object, value: object) -> float:
    if value is None:
        return np.nan
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise InputError(f"context.{name}", validation.shown(value), "a number, or None where it was lost")
    return float(value)


def _each(noise_cov: Any, group: Any) -> list[Any]:
    return [None if said is None else [said] for said in (noise_cov, group)]


def _found(denoiser: Any, measured: Named) -> list[Any]:
    """Names that say their order: the denoiser's, or numbers from 0."""
    fitted = getattr(denoiser, "feature_names_in_", None)
    if fitted is not None:
        return list(fitted)
    numbers = list(range(_width(denoiser) or len(measured)))
    if not measured or any(name not in numbers for name in measured):
        raise InputError("names", "missing", ORDER)
    return numbers


def _checked(names: Sequence[Any], as_is: list[Any], denoiser: Any) -> list[Any]:
    """Names, as many as the denoiser has columns, where it knows, and in its own order, where it has one."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise InputError("names", validation.shown(names), ORDER)
    width, fitted = _width(denoiser), getattr(denoiser, "feature_names_in_", None)
    if both := [name for name in names if name in as_is]:
        raise InputError("names", f"{both[0]!r}, which is in as_is", ORDER)
    if fitted is not None and list(names) != list(fitted):
        raise InputError("names", list(names), f"{list(fitted)}, as the denoiser was fitted")
    return names_or_numbers("names", names, width or len(names), "the denoiser's columns")


def _width(denoiser: Any) -> int | None:
    """How many columns, where the denoiser was fitted, or told a mean of each."""
    fitted, mean = (getattr(denoiser, name, None) for name in ("n_features_in_", "context_mean"))
    if fitted is not None:
        return int(fitted)
    return np.size(mean) if mean is not None and np.ndim(mean) == 1 else None
