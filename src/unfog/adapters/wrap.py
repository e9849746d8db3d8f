"""Put our denoiser in front of a bandit that somebody else wrote.

    bandit = wrap(MAB(["heat", "wait"], LearningPolicy.LinTS()), denoiser)

The wrapped bandit has the methods of its library, with the same arguments in the same order. Contexts go
through the denoiser on their way in: `Contexts` says when, and how often. They are rows of numbers (`Table`)
or numbers by name (`Names`). Every method with contexts also takes what is known about the reading:
`noise_cov=`, how precise it is, and `groups=` (`group=` for one), which device it comes from. In methods with
rows of contexts there is one of these for each row.

Denoising and then regressing on the result is called regression calibration, and for rewards linear in the
context it is exact: E[r | reading] = theta'E[c | reading]. Raymond J. Carroll, David Ruppert, Leonard A.
Stefanski and Ciprian M. Crainiceanu, *Measurement Error in Nonlinear Models*.

The library is recognised by the type of the bandit. None is imported here: whoever has a bandit has its
library.
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
from unfog.validation import InputError, check_keywords

COVARIANCE = "a variance, variances or a covariance of each row"
NUMBERS = "numbers, nan where a reading was lost"
REMEMBERED = 100_000
ORDER = "the names of what the denoiser denoises, in the order of its columns"
Named = dict[Any, Any]


class Denoises(Protocol):
    """The protocol of denoisers; `unfog.adapters.sklearn.Denoiser` has it."""

    def transform(self, X: Array, /) -> Any:  # noqa: N803
        """Rows (n, d), each by itself."""

    def transform_one(self, x: Array, /) -> Any:
        """One reading (d,), in the order of time: denoise it, then learn from it about the sensor."""


class ReadingInfo(NamedTuple):
    """What is known of a reading besides its numbers: how precise it is, and its device; None if not given.

    The same numbers from another device, or with another precision, are another reading. What is given with a
    decision may be left out with its reward: then it counts as unchanged.
    """

    noise_cov: Array | None  # (d, d)
    group: Any

    def key(self) -> tuple[bytes, str]:
        """A key that is the same for equal information, however it was written."""
        return b"" if self.noise_cov is None else self.noise_cov.tobytes(), repr(self.group)

    def agrees(self, before: "ReadingInfo") -> bool:
        """Whether this can refer to a decision that was made with the information `before`."""
        key, other_key = self.key(), before.key()
        same_noise = self.noise_cov is None or key[0] == other_key[0]
        return same_noise and (self.group is None or key[1] == other_key[1])

    def options(self) -> dict[str, Any]:
        """Keyword arguments for `transform_one`."""
        return {name: value for name, value in self._asdict().items() if value is not None}


Item = TypeVar("Item")


class Waiting(Generic[Item]):
    """Decisions that wait for their rewards, in tools that have no name for a decision.

    Such a tool hands back the context with the reward, and nothing else. So a decision is stored under its
    reading. Equal readings, which are common if a sensor gives whole numbers, are served in the order of
    their decisions: first in, first out. A decision whose reward never comes stays first in its queue until
    it is forgotten; if there are too many decisions, the oldest is. This is the rule for all our adapters.
    """

    def __init__(self, most: int) -> None:
        """Keep the latest `most` decisions."""
        self.most = validation.count("remember", most)
        # An ordered dictionary removes its first item in constant time; a plain one searches for it.
        self._reading: OrderedDict[int, bytes] = OrderedDict()
        self._queues: dict[bytes, OrderedDict[int, Item]] = {}
        self._number = 0

    def add(self, reading: Array, item: Item) -> None:
        """Add an item at the end of its queue."""
        key = _make_key(reading)
        self._reading[self._number] = key
        self._queues.setdefault(key, OrderedDict())[self._number] = item
        self._number += 1
        if len(self._reading) > self.most:
            self._remove(next(iter(self._reading)))

    def line(self, reading: Array) -> Iterator[Item]:
        """The items that wait for this reading's reward, oldest first."""
        return iter(self._queues.get(_make_key(reading), {}).values())

    def take(self, reading: Array, fits: Callable[[Item], bool] = lambda _: True) -> Item | None:
        """Remove and return the oldest item that fits, or None."""
        for number, item in self._queues.get(_make_key(reading), {}).items():
            if fits(item):
                self._remove(number)
                return item
        return None

    def __len__(self) -> int:
        return len(self._reading)

    def _remove(self, number: int) -> None:
        key = self._reading.pop(number)
        del self._queues[key][number]
        if not self._queues[key]:
            del self._queues[key]


@dataclass(eq=False)
class Decision:
    """The denoised context of a reading, for its decision and its reward."""

    info: ReadingInfo
    context: Array
    is_undecided: bool = True  # only scores were computed, and nothing decided yet

    def is_(self, other: "Decision") -> bool:
        """Whether this is the same decision: two with equal numbers are not."""
        return self is other


# Chooses earlier decisions for a reading with this information, which occurs so many times.
Choose = Callable[[Array, ReadingInfo, int], Sequence[Decision | None]]


class Contexts:
    """Noisy contexts on their way into a bandit: denoised once, for the decision, and kept for its reward.

    The denoiser learns about the sensor as readings come in, so the same reading is denoised to another
    number later. A learner must get the context of the decision, or it regresses rewards on numbers that no
    decision used. So a decision's context goes through `transform_one` (predict, then observe), and the
    result waits for the reward under the reading and its information: first in, first out.

    A context that comes with a reward and without an earlier decision, such as a row of an old log, goes
    through `transform`, together with all others of its kind. A method that starts afresh from a complete
    history gets contexts that were learnt from before: for them, too, the context of the decision is used.
    """

    def __init__(self, denoiser: Denoises, remember: int = REMEMBERED) -> None:
        """Remember the latest `remember` decisions."""
        validation.check_contract(
            "denoiser", denoiser, Denoises, "a denoiser, such as unfog.adapters.sklearn.Denoiser"
        )
        self.denoiser = denoiser
        self.waiting: Waiting[Decision] = Waiting(remember)
        self.learnt: Waiting[Decision] = Waiting(remember)

    @contextmanager
    def deciding(self, rows: Array, noise_cov: Any = None, groups: Any = None) -> Iterator[Array]:
        """Contexts to decide on, for readings (n, d) in the order of time; each is a decision of its own."""
        infos = rows_info(rows, noise_cov, groups)
        decisions = self._open_decisions(rows, infos, self._undecided)
        yield np.stack([decision.context for decision in decisions])
        # If the bandit raised an error they stay undecided, and the next attempt finds them.
        for decision in decisions:
            decision.is_undecided = False

    def asking(self, rows: Array, noise_cov: Any = None, groups: Any = None) -> Array:
        """Contexts to score: those of the latest waiting decisions on these readings, or of new ones."""
        infos = rows_info(rows, noise_cov, groups)
        return np.stack([decision.context for decision in self._open_decisions(rows, infos, self._latest)])

    @contextmanager
    def learning(
        self, rows: Array, noise_cov: Any = None, groups: Any = None, *, afresh: bool = False
    ) -> Iterator[Array]:
        """Contexts to learn from, for readings (n, d): those of their decisions, or else from `transform`."""
        infos = rows_info(rows, noise_cov, groups)
        decisions = _match_decisions(rows, infos, self._history if afresh else self._first)
        yield np.stack(self._fill_contexts(rows, infos, decisions))
        for row, decision in zip(
            rows, decisions, strict=True
        ):  # only now: the bandit may have raised an error
            if decision is not None and self.waiting.take(row, decision.is_):
                self.learnt.add(row, decision)

    def _undecided(self, row: Array, info: ReadingInfo, number: int) -> Sequence[Decision | None]:
        line = (
            decision
            for decision in self.waiting.line(row)
            if decision.is_undecided and decision.info.key() == info.key()
        )
        return list(islice(line, number))

    def _latest(self, row: Array, info: ReadingInfo, number: int) -> Sequence[Decision | None]:
        return [decision for decision in self.waiting.line(row) if decision.info.key() == info.key()][
            -number:
        ]

    def _first(self, row: Array, info: ReadingInfo, number: int) -> Sequence[Decision | None]:
        return list(
            islice((decision for decision in self.waiting.line(row) if info.agrees(decision.info)), number)
        )

    def _history(self, row: Array, info: ReadingInfo, number: int) -> Sequence[Decision | None]:
        """Decisions for a history: waiting ones come last, before them those learnt from most recently."""
        waiting = self._first(row, info, number)
        past = [decision for decision in self.learnt.line(row) if info.agrees(decision.info)]
        known = [*past[len(past) - min(number - len(waiting), len(past)) :], *waiting]
        return [*[None] * (number - len(known)), *known]

    def _open_decisions(self, rows: Array, infos: list[ReadingInfo], choose: Choose) -> list[Decision]:
        """Earlier decisions where `choose` finds any, and new ones for the other rows."""
        matches = _match_decisions(rows, infos, choose)
        contexts = self._fill_contexts(rows, infos, matches, one_by_one=True)
        decisions = []
        for row, info, decision, context in zip(rows, infos, matches, contexts, strict=True):
            if decision is None:
                decision = Decision(info, context)
                self.waiting.add(row, decision)
            decisions.append(decision)
        return decisions

    def _fill_contexts(
        self,
        rows: Array,
        infos: list[ReadingInfo],
        decisions: list[Decision | None],
        *,
        one_by_one: bool = False,
    ) -> list[Array]:
        """The contexts of earlier decisions; other rows are denoised, one by one or all at once."""
        contexts = {row: decision.context for row, decision in enumerate(decisions) if decision is not None}
        fresh = [row for row, decision in enumerate(decisions) if decision is None]
        if one_by_one:
            for row in fresh:
                denoised = self.denoiser.transform_one(rows[row], **infos[row].options())
                contexts[row] = np.asarray(denoised, float).reshape(-1)
        else:
            for kind in {(infos[i].noise_cov is None, infos[i].group is None) for i in fresh}:
                alike = [i for i in fresh if (infos[i].noise_cov is None, infos[i].group is None) == kind]
                contexts |= zip(alike, self._transform(rows[alike], [infos[i] for i in alike]), strict=True)
        return [contexts[row] for row in range(len(rows))]

    def _transform(self, rows: Array, infos: list[ReadingInfo]) -> Array:
        """Denoise rows that have the same kinds of information, with the column names of the denoiser."""
        options: dict[str, Any] = {}
        if infos[0].noise_cov is not None:
            options["noise_cov"] = np.stack([info.noise_cov for info in infos if info.noise_cov is not None])
        if infos[0].group is not None:
            options["groups"] = np.array([info.group for info in infos], object)  # 1 and "1" stay apart
        names = getattr(self.denoiser, "feature_names_in_", None)
        if names is None:
            return np.asarray(self.denoiser.transform(rows, **options), float)
        from pandas import DataFrame

        return np.asarray(self.denoiser.transform(DataFrame(rows, columns=names), **options), float)


class Table:
    """Contexts as rows of numbers, the way of mabwiser, contextualbandits and bayesianbandits.

    Columns named `as_is` reach the bandit as they are: a column of ones for the intercept, or what is known
    without error. The denoised columns replace the noisy ones. If a denoiser gives more than one number for
    each column (its mean and its spread, or draws), the others follow on the right.
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
            yield self._join(rows, measured, denoised)

    def asking(self, field: str, value: object, noise_cov: Any, groups: Any) -> Array:
        """Rows to score."""
        rows, measured = self._split(field, value)
        return self._join(rows, measured, self.contexts.asking(rows[:, measured], noise_cov, groups))

    @contextmanager
    def learning(
        self, field: str, value: object, noise_cov: Any, groups: Any, *, afresh: bool = False
    ) -> Iterator[Array]:
        """Rows to learn from; `afresh`, they may have been learnt from before."""
        rows, measured = self._split(field, value)
        with self.contexts.learning(rows[:, measured], noise_cov, groups, afresh=afresh) as denoised:
            yield self._join(rows, measured, denoised)

    def _split(self, field: str, value: object) -> tuple[Array, list[int]]:
        """The rows, and which of their columns were measured."""
        rows = readings(field, value)
        width = rows.shape[1]
        if any(column >= width for column in self.as_is) or len(set(self.as_is)) >= width:
            raise InputError("as_is", self.as_is, f"columns of a context that has {width}, not all of them")
        if np.isnan(rows[:, self.as_is]).any():
            raise InputError("contexts", "nan in a column that passes as it is", "nan in measured columns")
        return rows, [column for column in range(width) if column not in self.as_is]

    def _join(self, rows: Array, measured: list[int], denoised: Array) -> Array:
        full = rows.copy()
        full[:, measured] = denoised[:, : len(measured)]
        return np.hstack([full, denoised[:, len(measured) :]])


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
        self.names = [] if names is None else _check_names(names, self.as_is, contexts.denoiser)

    @contextmanager
    def deciding(self, context: Any, noise_cov: Any, group: Any) -> Iterator[Named]:
        """A context to decide on."""
        known, row = self._split(context)
        with self.contexts.deciding(row, *_as_lists(noise_cov, group)) as denoised:
            yield self._join(known, denoised)

    @contextmanager
    def learning(self, context: Any, noise_cov: Any, group: Any) -> Iterator[Named]:
        """A context to learn from."""
        known, row = self._split(context)
        with self.contexts.learning(row, *_as_lists(noise_cov, group)) as denoised:
            yield self._join(known, denoised)

    def _split(self, context: Any) -> tuple[Named, Array]:
        """The numbers that pass as they are, and the measured ones as a row."""
        if not isinstance(context, Mapping):
            raise InputError(
                "context", validation.display(context), "numbers by name, as in {'temperature': 21.5}"
            )
        known = {name: context[name] for name in self.as_is if name in context}
        measured = {name: value for name, value in context.items() if name not in known}
        # Only now, since a denoiser may be fitted after the bandit was wrapped.
        self.names = self.names or _find_names(self.contexts.denoiser, measured)
        return known, readings("context", [context_row(measured, self.names)])

    def _join(self, known: Named, denoised: Array) -> Named:
        return known | {self._name(index): value for index, value in enumerate(denoised[0].tolist())}

    def _name(self, index: int) -> Any:
        copy, column = divmod(index, len(self.names))
        return self.names[column] if copy == 0 else f"{self.names[column]}_{copy + 1}"


Way = TypeVar("Way")


@check_keywords
class Wrapped(Generic[Way]):
    """A bandit of another library; a class for each library overrides the methods that take contexts."""

    def __init__(self, bandit: Any, way: Way) -> None:
        """Keep the bandit itself, not a copy, and the way its contexts are denoised."""
        self.bandit, self.way = bandit, way

    def __getattr__(self, name: str) -> Any:
        """Everything else is the bandit's."""
        # Copying and unpickling look up attributes before there is a bandit.
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


@check_keywords
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
    way: Any = _make_way(library, Contexts(denoiser, remember), as_is, names)
    from unfog.adapters import libraries

    if library == "vowpalwabbit":
        return libraries.wrap_vowpalwabbit(bandit, way, () if actions is None else actions)
    if actions is not None:
        raise InputError(
            "actions", validation.display(actions), f"nothing: a bandit of {library} knows its arms"
        )
    return libraries.WRAPPERS[library](bandit, way)


def _make_way(library: str, contexts: Contexts, as_is: Any, names: Any) -> Table | Names:
    """How contexts are denoised in this library: by column or by name."""
    if isinstance(as_is, str) or not isinstance(as_is, Sequence):
        raise InputError("as_is", validation.display(as_is), "a list of columns or names")
    if WAYS[library] is Names:
        return Names(contexts, as_is, names)
    if names is not None:
        raise InputError("names", validation.display(names), f"nothing: contexts of {library} are rows")
    return Table(contexts, as_is)


def library_of(bandit: object) -> str:
    """The library of a bandit's class, or of one that it inherits from."""
    if isinstance(bandit, type):
        raise InputError("bandit", f"the class {bandit.__name__}", f"{ALLOWED}; of a class, an instance")
    packages = [kind.__module__.partition(".")[0] for kind in type(bandit).__mro__]
    libraries = [home for home in packages if home in WAYS]
    if not libraries:
        raise InputError("bandit", f"{type(bandit).__name__} of {packages[0]}", ALLOWED)
    return libraries[0]


def rows_info(rows: Array, noise_cov: Any, groups: Any) -> list[ReadingInfo]:
    """The information on each row."""
    covs, labels = _check_one_each("noise_cov", noise_cov, rows), _check_one_each("groups", groups, rows)
    return [
        ReadingInfo(
            _read_covariance(cov, rows.shape[1]), label.item() if isinstance(label, np.generic) else label
        )
        for cov, label in zip(covs, labels, strict=True)
    ]


def _check_one_each(field: str, value: Any, rows: Array) -> Sequence[Any]:
    if value is None:
        return [None] * len(rows)
    if not hasattr(value, "__len__") or len(value) != len(rows):
        raise InputError(field, validation.display(value), f"one for each row, {len(rows)} of them")
    return list(value)


def _read_covariance(value: Any, dim: int) -> Array | None:
    """A covariance as a matrix, since variances of rows could be mistaken for one covariance of all."""
    if value is None:
        return None
    values = validation.numbers("noise_cov", value, COVARIANCE)
    if values.shape == (dim, dim):
        return values
    return np.diag(validation.vector("noise_cov", value, dim))


def _match_decisions(rows: Array, infos: list[ReadingInfo], choose: Choose) -> list[Decision | None]:
    """A decision for each row, or None; equal rows get the chosen decisions in order."""
    alike: dict[Any, list[int]] = {}
    for index, (row, info) in enumerate(zip(rows, infos, strict=True)):
        alike.setdefault((row.tobytes(), info.key()), []).append(index)
    matches: dict[int, Decision] = {}
    used: set[Decision] = set()  # by another row of the same numbers with less information
    for indices in alike.values():
        candidates = choose(rows[indices[0]], infos[indices[0]], len(indices))
        new = {
            index: decision
            for index, decision in zip(indices, candidates, strict=False)
            if decision and decision not in used
        }
        used.update(new.values())
        matches |= new
    return [matches.get(index) for index in range(len(rows))]


def _make_key(reading: Array) -> bytes:
    return _canonical(reading).tobytes()


def _canonical(reading: Array) -> Array:
    """A reading with equal bytes for equal numbers: there are many kinds of NaN, and two zeros."""
    return np.where(np.isnan(reading), np.nan, reading + 0.0)


def readings(field: str, value: object) -> Array:
    """Rows of numbers (n, d); one context may come without its row."""
    allowed = f"rows of {NUMBERS}"
    return _canonical(_table.matrix(field, np.atleast_2d(_table.array(field, value, allowed)), allowed))


def names_or_numbers(field: str, names: Sequence[Hashable] | None, number: int, order: str) -> list[Hashable]:
    """Check that there are `number` different names; numbers from 0 if none are given."""
    result = list(range(number) if names is None else names)
    if isinstance(names, str) or len(result) != number or len(set(result)) != number:
        raise InputError(
            field, validation.display(names), f"{number} different names, in the order of {order}"
        )
    return result


def context_row(context: Mapping[Any, Any], names: Sequence[Hashable]) -> Array:
    """The numbers of a context (d,) in the order of these names; nan for one that is missing or None."""
    if unknown := [name for name in context if name not in names]:
        raise InputError("context", unknown[0], f"the names {', '.join(map(str, names))}")
    return np.array([_read_number(name, context.get(name)) for name in names], float)


def _read_number(name: object, value: object) -> float:
    if value is None:
        return np.nan
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise InputError(f"context.{name}", validation.display(value), "a number, or None where it was lost")
    return float(value)


def _as_lists(noise_cov: Any, group: Any) -> list[Any]:
    return [None if value is None else [value] for value in (noise_cov, group)]


def _find_names(denoiser: Any, measured: Named) -> list[Any]:
    """Names in the order of columns: the denoiser's own, or numbers from 0."""
    fitted = getattr(denoiser, "feature_names_in_", None)
    if fitted is not None:
        return list(fitted)
    numbers = list(range(_width(denoiser) or len(measured)))
    if not measured or any(name not in numbers for name in measured):
        raise InputError("names", "missing", ORDER)
    return numbers


def _check_names(names: Sequence[Any], as_is: list[Any], denoiser: Any) -> list[Any]:
    """Check names against the denoiser's columns, as far as it has a number or an order of them."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise InputError("names", validation.display(names), ORDER)
    width, fitted = _width(denoiser), getattr(denoiser, "feature_names_in_", None)
    if overlap := [name for name in names if name in as_is]:
        raise InputError("names", f"{overlap[0]!r}, which is in as_is", ORDER)
    if fitted is not None and list(names) != list(fitted):
        raise InputError("names", list(names), f"{list(fitted)}, as the denoiser was fitted")
    return names_or_numbers("names", names, width or len(names), "the denoiser's columns")


def _width(denoiser: Any) -> int | None:
    """The number of columns, if the denoiser was fitted or has a mean for each."""
    fitted, mean = (getattr(denoiser, name, None) for name in ("n_features_in_", "context_mean"))
    if fitted is not None:
        return int(fitted)
    return np.size(mean) if mean is not None and np.ndim(mean) == 1 else None
