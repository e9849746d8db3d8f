"""The suite: every rival, and ours, plays every problem, and what was found is kept.

A `Match` is one problem: who can play it, their regrets, and what these come to. Agents whose rounds take
long play the first of the trials that the others play: a trial is the same whoever else plays it, so that
they are paired all the same.

Tuning gives about the same budget to all: one setting each, of six or seven values, chosen on other seeds. A
rival's row names the setting that says how much it explores, and six values for it. The published value is
tried too: it is one of the six, or a seventh. Ours has the level of its chooser, six values with its own. The
value with the least mean regret on the tuning seed is taken, on each problem by itself; what is reported is
its regret on the reporting seed. An agent without such a setting stays as it is. Agents whose rounds take
long are tuned on fewer trials, and the slowest on a quarter of the rounds.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from unfog.agents.agent import Agent
from unfog.agents.baselines import RIVALS
from unfog.agents.catalogue import EVERY, Catalogue, named
from unfog.features.link import KINDS
from unfog.lab.baselines import folder as folders
from unfog.lab.baselines import report
from unfog.lab.baselines.problems import LOSS, OURS, PACES, PAPER, PLACES, Place, build, pace, why_not
from unfog.lab.baselines.report import Comparison, Outcome, Row, held
from unfog.lab.prepare import prepare
from unfog.lab.run import Progress, play, quiet
from unfog.lab.run_folder import run_folder
from unfog.lab.spec import Spec, checked, with_run
from unfog.maths.arrays import Array
from unfog.maths.statistics import estimate
from unfog.simulation import MOST_SEED, engines, plan
from unfog.simulation.executors import MOST_WORKERS
from unfog.validation import InputError, count, flag, one_of, shown
from unfog.worlds.problem import Problem

SEED = 1000
TRIALS = {"quick": 40, "slow": 40, "dear": 5}  # by how long an agent's rounds take
DEAR_ROUNDS = 4  # these take so long that their setting is chosen over one round in so many
LEVELS = (0.35, 0.5, 0.7, 1.0, 2.0)  # beside the default's, 1.4

Bars: TypeAlias = Callable[[str], AbstractContextManager[Progress]]
Regrets: TypeAlias = dict[str, Array]  # agent -> (trials,)
Say: TypeAlias = Callable[[str], None]


@contextmanager
def silent(_: str) -> Iterator[Progress]:
    """A bar that nobody sees."""
    yield quiet


class Asked(NamedTuple):
    """What decides the result; None leaves a problem's own."""

    problems: tuple[str, ...]
    agents: tuple[str, ...]
    rounds: int | None = None
    trials: int | None = None
    seed: int = 0
    engine: str = "numpy"
    precision: str | None = None
    tuned: bool = False
    scale: float = 1.0  # of the problems' own numbers of trials

    def run_of(self, place: Place, pace: str = "quick", *, other_seed: bool = False) -> dict[str, Any]:
        """The fields of [run] for a problem and agents of one pace; for tuning on another seed."""
        usual = max(2, round(self.scale * min(place.trials, PACES[pace])))
        told: dict[str, Any] = {"rounds": self.rounds, "trials": self.trials or usual, "seed": self.seed}
        if other_seed:
            told |= {"trials": min(told["trials"], TRIALS[pace]), "seed": SEED}
            if pace == "dear":
                told["rounds"] = max(1, (self.rounds or place.spec().run.rounds) // DEAR_ROUNDS)
        return {**told, "engine": self.engine, "precision": self.precision}


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
    back for a table; `unfog.lab.baselines.report.figure` draws it.

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
    if tuned and seed == SEED:
        raise InputError("seed", seed, "another: settings are chosen on this one")
    sizes = _count("rounds", rounds), _count("trials", trials)
    start = 0 if seed is None else count("seed", seed, 0, MOST_SEED)
    wanted = engines.check_name("numpy" if engine is None else engine)
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


def _each(field: str, names: Sequence[str]) -> dict[str, None]:
    """The names told, each once."""
    if (
        isinstance(names, str)
        or not isinstance(names, Sequence)
        or not all(isinstance(n, str) for n in names)
    ):
        raise InputError(field, shown(names), "a list of names")
    return dict.fromkeys(names)


def claim(told: Asked, out: Path | None, workers: int, runs: Path = Path("runs")) -> Path:
    """The folder of a suite; what cannot be played as it is asked for is refused before one is made."""
    count("workers", workers, most=MOST_WORKERS)
    for place in (PLACES[name] for name in told.problems):
        problem, _ = _built(place)
        if problem is not None:
            engine, precision = told.engine, told.precision
            plan([problem], [place.main], rounds=1, trials=1, seed=0, engine=engine, precision=precision)
    return folders.claim(told._asdict(), out, runs)


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


def _built(place: Place) -> tuple[Problem | None, str]:
    """The world of a place; none where its data are missing, and what is missing."""
    try:
        return build(place), ""
    except InputError as error:
        if error.field != "data":
            raise
        return None, f"{error.value}; see docs/guide/data.md"


class Match:
    """Plays one problem."""

    def __init__(
        self, told: Asked, place: Place, problem: Problem, folder: Path | None, workers: int, bars: Bars
    ) -> None:
        """Find out who plays, and who is held against whom."""
        self.told, self.place, self.problem = told, place, problem
        self.folder, self.workers, self.bars = folder, workers, bars
        self.rows = Catalogue(problem.rewards.kind)
        reasons = {name: why_not(name, problem, told.engine) for name in told.agents}
        self.left_out = {name: why for name, why in reasons.items() if why}
        self.agents = [name for name in told.agents if name not in self.left_out]
        self.pairs = [(name, *pair) for name in self.agents for pair in place.against(self.rows[name])]
        self.ours = list(dict.fromkeys([place.main, *(against for _, against, _ in self.pairs)]))
        also = [name for name in place.also if not why_not(name, problem, told.engine)]
        mine = [name for name in (*self.ours, *also) if name not in (place.main, *self.agents)]
        self.pairs += [(name, place.main, "ours") for name in mine]
        self.everybody = list(dict.fromkeys([*self.ours, *self.agents, *mine]))

    @property
    def nobody(self) -> str:
        """Why none of the agents asked for can play."""
        return "; ".join(f"{name}: {why}" for name, why in self.left_out.items())

    def outcome(self) -> Outcome:
        """All that is to be said of it."""
        regrets = self.regrets(self.everybody, "")
        spec = self.spec("", "quick")
        return Outcome(
            problem=self.place.name,
            title=self.place.title,
            rounds=spec.run.rounds,
            seed=spec.run.seed,
            yardstick=self.place.yardstick,
            rows=tuple(held(*pair, regrets) for pair in self.pairs),
            tuned=self.tuned(regrets) if self.told.tuned else (),
            ours={name: estimate(regrets[name]).mean for name in self.ours},
            left_out=self.left_out,
            seconds={name: self.seconds(self.rows[name], spec.run.rounds) for name in self.everybody},
        )

    def seconds(self, agent: Agent, rounds: int) -> float:
        """Of a trial's round in a batch."""
        return report.seconds(agent, self.problem, rounds=min(rounds, report.ROUNDS), trials=report.TRIALS)

    def tuned(self, published: Regrets) -> tuple[Row, ...]:
        """Rows with one setting each, chosen on another seed; as published where that was best."""
        tried = [one for name in self.everybody for one in candidates(name)]
        best = chosen(self.everybody, self.regrets(tried, "-tuning", other_seed=True))
        again = [picked for name, picked in best.items() if picked != name]
        found = self.regrets(again, "-tuned")
        regrets = {name: found.get(picked, published[name]) for name, picked in best.items()}
        said = {name: setting(name, picked) for name, picked in best.items()}
        return tuple(held(*pair, regrets, said[pair[0]]) for pair in self.pairs)

    def spec(self, ending: str, kind: str, *, other_seed: bool = False) -> Spec:
        """What is run for agents of one pace."""
        spec = with_run(self.place.spec(), self.told.run_of(self.place, kind, other_seed=other_seed))
        end = "" if kind == "quick" else f"-{kind}"
        return spec.model_copy(update={"name": f"{self.place.name}{ending}{end}"})

    def regrets(self, names: Iterable[str], ending: str, *, other_seed: bool = False) -> Regrets:
        """The regret of each after the last round, trial by trial."""
        found, twins = Regrets(), self.twins(names)
        for kind in PACES:
            some = [name for name in dict.fromkeys(twins.values()) if pace(self.rows[name]) == kind]
            if some:
                spec = self.spec(ending, kind, other_seed=other_seed)
                found |= self.run(with_run(spec, {"agents": some}))
        return {name: found[twin] for name, twin in twins.items()}

    def twins(self, names: Iterable[str]) -> dict[str, str]:
        """For each the first that has the same parts: two rivals may differ for other rewards alone."""
        found = dict[str, str]()
        for name in names:
            row, others = self.rows[name], dict.fromkeys(found.values())
            found[name] = next((other for other in others if row.same_as(self.rows[other])), name)
        return found

    def run(self, spec: Spec) -> Regrets:
        """The run of a spec, kept where there is a folder."""
        plan = prepare(checked(spec), workers=self.workers, problem=self.problem)
        with self.bars(spec.name) as progress:
            data = play(plan, progress) if self.folder is None else folders.kept(self.folder, plan, progress)
        final = data[LOSS].isel(round=-1)
        return {str(name): final.sel(agent=name).values for name in data["agent"].values}


def candidates(name: str) -> list[str]:
    """The agent as published, then with each value: all that is tried."""
    setting, values = setting_of(name)
    spelled = [f"{name}:{setting}={value:g}" for value in values]
    return [name, *(one for one in spelled if not _published(name, setting, one))]


def setting_of(name: str) -> tuple[str, tuple[float, ...]]:
    """The setting of an agent that is tuned, and its values; no values where it has none."""
    if name in RIVALS:
        return RIVALS[name].tuned, RIVALS[name].grid
    return ("level", LEVELS) if name in OURS else ("", ())


def _published(name: str, setting: str, spelled: str) -> bool:
    """Whether a value is that of the row itself, which stands in the list already."""
    row, value = EVERY[name], float(spelled.rpartition("=")[2])
    parts = row.denoiser, row.learner, row.chooser
    found = [vars(part)[setting] for part in parts if setting in vars(part)]
    return bool(found) and all(float(one) == value for one in found)


def chosen(names: Sequence[str], regrets: Mapping[str, Array]) -> dict[str, str]:
    """For each agent its candidate with the least mean regret; the first of equals."""
    return {name: min(candidates(name), key=lambda one: float(regrets[one].mean())) for name in names}


def setting(name: str, picked: str) -> str:
    """What was changed, in words."""
    return picked.removeprefix(f"{name}:") if picked != name else "as published"
