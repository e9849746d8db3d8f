"""Play every rival, and ours, on every problem, and keep what was found."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from unfog.agents.baselines import RIVALS
from unfog.agents.catalogue import Catalogue, named
from unfog.features.link import KINDS
from unfog.lab.rivals import folder as folders
from unfog.lab.rivals import tuning
from unfog.lab.rivals.match import Asked, Bars, Match, silent
from unfog.lab.rivals.problems import OURS, PAPER, PLACES, Place, build
from unfog.lab.rivals.table import Comparison, Outcome
from unfog.lab.spec import checked, with_run
from unfog.lab.target import run_folder
from unfog.simulation import MOST_SEED, engines, plan
from unfog.simulation.executors import MOST_WORKERS
from unfog.validation import InputError, count, flag, one_of, shown
from unfog.worlds.problem import Problem

Say: TypeAlias = Callable[[str], None]


def rivals(
    problems: Sequence[str] | None = None,
    *,
    agents: Sequence[str] | None = None,
    rounds: int | None = None,
    trials: int | None = None,
    seed: int | None = None,
    engine: str | None = None,
    precision: str | None = None,
    workers: int = 1,
    tuned: bool = False,
    out: str | Path | None = None,
) -> Comparison:
    """Every rival, or these agents, as regret ratios to ours on the problems of its page, or on some.

    Ratios are above 1 where ours is better. `tuned` adds each with one setting chosen on other seeds. With
    `out` the runs are kept in that folder, and an interrupted suite is gone on with there. Print what comes
    back for a table; `unfog.lab.rivals.figure.figure` draws it.

    >>> import unfog
    >>> found = unfog.rivals(["fig1-gaussian"], agents=["linucb"], rounds=20, trials=5)
    >>> 'linucb' in str(found)
    True
    """
    told = asked(problems, agents, rounds, trials, seed, engine, precision, tuned)
    where = None if out is None else claim(told, run_folder(out), workers)
    return compare(told, where, workers)


def asked(
    problems: Sequence[str] | None,
    agents: Sequence[str] | None,
    rounds: int | None,
    trials: int | None,
    seed: int | None,
    engine: str | None,
    precision: str | None,
    tuned: bool = False,
) -> Asked:
    """What is asked for, checked."""
    names = _problems(problems), _agents(agents)
    flag("tuned", tuned)
    if tuned and seed == tuning.SEED:
        raise InputError("seed", seed, "another: settings are chosen on this one")
    sizes = _count("rounds", rounds), _count("trials", trials)
    start = 0 if seed is None else count("seed", seed, 0, MOST_SEED)
    wanted = engines.canonical("numpy" if engine is None else engine)
    told = Asked(*names, *sizes, start, wanted, precision, tuned)
    for name in told.problems:
        checked(with_run(PLACES[name].spec(), told.run_of(PLACES[name])))
    return told


def _count(field: str, value: int | None) -> int | None:
    return None if value is None else count(field, value)


def _problems(problems: Sequence[str] | None) -> tuple[str, ...]:
    """Those named, each once; all unless told."""
    names = tuple(PLACES if problems is None else _each("problems", problems))
    if not names:
        raise InputError("problems", "none named", f"one or more of {', '.join(PLACES)}")
    for name in names:
        one_of("problems", name, list(PLACES))
    return names


def _each(field: str, names: Sequence[str]) -> dict[str, None]:
    """The names told, each once."""
    if (
        isinstance(names, str)
        or not isinstance(names, Sequence)
        or not all(isinstance(n, str) for n in names)
    ):
        raise InputError(field, shown(names), "a list of names")
    return dict.fromkeys(names)


def _agents(agents: Sequence[str] | None) -> tuple[str, ...]:
    """Those named, each once; all rivals unless told. A name that no agent has is refused."""
    names = tuple((*RIVALS, *PAPER) if agents is None else _each("agents", agents))
    if not names:
        raise InputError("agents", "none named", f"one or more of {', '.join((*RIVALS, *PAPER))}")
    for name in names:
        if name in OURS:
            others = f"{', '.join((*RIVALS, *PAPER))}, or another agent of `unfog list`"
            raise InputError("agents", f"{name!r} is what others are held against", others)
        complaints = list[InputError]()
        for kind in KINDS:
            try:
                named([name], "agents", Catalogue(kind))
            except InputError as error:
                complaints.append(error)
        if len(complaints) == len(KINDS):
            raise complaints[0]
    return names


def claim(told: Asked, out: Path | None, workers: int, runs: Path = Path("runs")) -> Path:
    """The folder of a suite; what cannot be played as it is asked for is refused before one is made."""
    count("workers", workers, most=MOST_WORKERS)
    for place in (PLACES[name] for name in told.problems):
        problem, _ = _built(place)
        if problem is not None:
            engine, precision = told.engine, told.precision
            plan([problem], [place.main], rounds=1, trials=1, seed=0, engine=engine, precision=precision)
    return folders.claim(told._asdict(), out, runs)


def _built(place: Place) -> tuple[Problem | None, str]:
    """The world of a place; none where its data are missing, and what is missing."""
    try:
        return build(place), ""
    except InputError as error:
        if error.field != "data":
            raise
        return None, f"{error.value}; see docs/guide/data.md"


def compare(
    told: Asked, folder: Path | None, workers: int = 1, bars: Bars = silent, say: Say = lambda _: None
) -> Comparison:
    """Play all problems in turn; one without data, or that nobody can play, is left out, and that is said."""
    count("workers", workers, most=MOST_WORKERS)
    outcomes, left_out = list[Outcome](), dict[str, str]()
    for place in (PLACES[name] for name in told.problems):
        problem, why = _built(place)
        match = None if problem is None else Match(told, place, problem, folder, workers, bars)
        if match is not None and match.agents:
            outcomes.append(match.outcome())
            continue
        left_out[place.name] = why if match is None else match.nobody
        say(f"{place.name} is left out: {left_out[place.name]}")
    found = Comparison(tuple(outcomes), left_out)
    if folder is not None:
        folders.finish(folder, found)
    return found
