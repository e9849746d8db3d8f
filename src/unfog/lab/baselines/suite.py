"""The suite: every baseline, and our agents, play every problem, and the results are stored.

A `Match` is one problem: who can play it, their regrets, and the ratios of these. Agents whose rounds take
long play only the first of the trials that the others play. A trial is the same whoever else plays it, so the
comparison is still paired.

Tuning gives about the same budget to all: one setting each, of six or seven values, chosen on other seeds. A
baseline's row names the setting that controls how much it explores, and six values for it. The published
value is tried too: it is one of the six, or a seventh. For our agents it is the level of the chooser: six
values, including the default. On each problem the value with the least mean regret on the tuning seed is
taken, and its regret on the reporting seed is reported. An agent without such a setting stays as it is.
Agents whose rounds take long are tuned on fewer trials, and the slowest on a quarter of the rounds.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from unfog.agents.agent import Agent
from unfog.agents.baselines import BASELINES
from unfog.agents.catalogue import EVERY, Catalogue, select_rows
from unfog.features.link import KINDS
from unfog.lab.baselines import folder as folders
from unfog.lab.baselines import report
from unfog.lab.baselines.problems import (
    BENCHMARKS,
    LOSS,
    OURS,
    PACES,
    PAPER,
    BenchmarkProblem,
    build,
    pace,
    why_not,
)
from unfog.lab.baselines.report import Comparison, Outcome, Row, held
from unfog.lab.prepare import prepare
from unfog.lab.run import Progress, play, quiet
from unfog.lab.run_folder import run_folder
from unfog.lab.spec import Spec, checked, with_run
from unfog.maths.arrays import Array
from unfog.maths.statistics import estimate
from unfog.simulation import MOST_SEED, engines, plan
from unfog.simulation.executors import MOST_WORKERS
from unfog.validation import InputError, check_keywords, count, display, flag, one_of
from unfog.worlds.problem import Problem

SEED = 1000
TRIALS = {"quick": 40, "slow": 40, "dear": 5}  # by how long an agent's rounds take
DEAR_ROUNDS = 4  # the settings of the slowest are chosen over one round in so many
LEVELS = (0.35, 0.5, 0.7, 1.0, 2.0)  # beside the default's, 1.4

Bars: TypeAlias = Callable[[str], AbstractContextManager[Progress]]
Regrets: TypeAlias = dict[str, Array]  # agent -> (trials,)
OnMessage: TypeAlias = Callable[[str], None]


@contextmanager
def silent(_: str) -> Iterator[Progress]:
    """A progress bar that is not shown."""
    yield quiet


class SuiteRequest(NamedTuple):
    """What determines the result; None stands for a problem's own value."""

    problems: tuple[str, ...]
    agents: tuple[str, ...]
    rounds: int | None = None
    trials: int | None = None
    seed: int = 0
    engine: str = "numpy"
    precision: str | None = None
    tuned: bool = False
    scale: float = 1.0  # of the problems' own numbers of trials

    def run_of(
        self, benchmark: BenchmarkProblem, pace: str = "quick", *, other_seed: bool = False
    ) -> dict[str, Any]:
        """The fields of [run] for a problem and agents of one pace; for tuning on another seed."""
        usual = max(2, round(self.scale * min(benchmark.trials, PACES[pace])))
        fields: dict[str, Any] = {"rounds": self.rounds, "trials": self.trials or usual, "seed": self.seed}
        if other_seed:
            fields |= {"trials": min(fields["trials"], TRIALS[pace]), "seed": SEED}
            if pace == "dear":
                fields["rounds"] = max(1, (self.rounds or benchmark.spec().run.rounds) // DEAR_ROUNDS)
        return {**fields, "engine": self.engine, "precision": self.precision}


@check_keywords
def compare_baselines(
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
    """Every baseline, or these agents, as regret ratios to ours on the problems of its page, or on some.

    Ratios are above 1 where ours is better. `tuned` adds each with one setting chosen on other seeds. With
    `out` the runs are kept in that folder, and an interrupted suite is gone on with there. Print what comes
    back for a table; `unfog.lab.baselines.report.figure` draws it.

    >>> import unfog
    >>> found = unfog.compare_baselines(["fig1-gaussian"], agents=["linucb"], rounds=20, trials=5)
    >>> 'linucb' in str(found)
    True
    """
    request = check_request(problems, agents, rounds, trials, seed, engine, precision, tuned)
    folder = None if out is None else claim(request, run_folder(out), workers)
    return compare(request, folder, workers)


def check_request(
    problems: Sequence[str] | None,
    agents: Sequence[str] | None,
    rounds: int | None,
    trials: int | None,
    seed: int | None,
    engine: str | None,
    precision: str | None,
    tuned: bool = False,
) -> SuiteRequest:
    """Check the arguments of `compare_baselines`, and return the request."""
    names = _check_problems(problems), _check_agents(agents)
    flag("tuned", tuned)
    if tuned and seed == SEED:
        raise InputError("seed", seed, "another: settings are chosen on this one")
    sizes = _check_count("rounds", rounds), _check_count("trials", trials)
    start = 0 if seed is None else count("seed", seed, 0, MOST_SEED)
    engine_name = engines.check_name("numpy" if engine is None else engine)
    request = SuiteRequest(*names, *sizes, start, engine_name, precision, tuned)
    for name in request.problems:
        checked(with_run(BENCHMARKS[name].spec(), request.run_of(BENCHMARKS[name])))
    return request


def _check_count(field: str, value: int | None) -> int | None:
    return None if value is None else count(field, value)


def _check_problems(problems: Sequence[str] | None) -> tuple[str, ...]:
    """Check the names of problems; all of them if None. Repeats are dropped."""
    names = tuple(BENCHMARKS if problems is None else _check_names("problems", problems))
    if not names:
        raise InputError("problems", "none named", f"one or more of {', '.join(BENCHMARKS)}")
    for name in names:
        one_of("problems", name, list(BENCHMARKS))
    return names


def _check_agents(agents: Sequence[str] | None) -> tuple[str, ...]:
    """Check the names of agents; all baselines if None. Repeats are dropped, unknown names refused."""
    names = tuple((*BASELINES, *PAPER) if agents is None else _check_names("agents", agents))
    if not names:
        raise InputError("agents", "none named", f"one or more of {', '.join((*BASELINES, *PAPER))}")
    for name in names:
        if name in OURS:
            others = f"{', '.join((*BASELINES, *PAPER))}, or another agent of `unfog list`"
            raise InputError("agents", f"{name!r} is what others are held against", others)
        complaints = list[InputError]()
        for kind in KINDS:
            try:
                select_rows([name], "agents", Catalogue(kind))
            except InputError as error:
                complaints.append(error)
        if len(complaints) == len(KINDS):
            raise complaints[0]
    return names


def _check_names(field: str, names: Sequence[str]) -> dict[str, None]:
    """Check that these are names, and drop repeats."""
    if (
        isinstance(names, str)
        or not isinstance(names, Sequence)
        or not all(isinstance(n, str) for n in names)
    ):
        raise InputError(field, display(names), "a list of names")
    return dict.fromkeys(names)


def claim(request: SuiteRequest, out: Path | None, workers: int, runs: Path = Path("runs")) -> Path:
    """The folder of a suite; a request that cannot be played is refused before the folder is created."""
    count("workers", workers, most=MOST_WORKERS)
    for benchmark in (BENCHMARKS[name] for name in request.problems):
        problem, _ = _try_build(benchmark)
        if problem is not None:
            engine, precision = request.engine, request.precision
            plan([problem], [benchmark.main], rounds=1, trials=1, seed=0, engine=engine, precision=precision)
    return folders.claim(request._asdict(), out, runs)


def compare(
    request: SuiteRequest,
    folder: Path | None,
    workers: int = 1,
    bars: Bars = silent,
    on_message: OnMessage = lambda _: None,
) -> Comparison:
    """Play all problems in turn; one without data or players is left out, which `on_message` is told."""
    count("workers", workers, most=MOST_WORKERS)
    outcomes, left_out = list[Outcome](), dict[str, str]()
    for benchmark in (BENCHMARKS[name] for name in request.problems):
        problem, why = _try_build(benchmark)
        match = None if problem is None else Match(request, benchmark, problem, folder, workers, bars)
        if match is not None and match.agents:
            outcomes.append(match.outcome())
            continue
        left_out[benchmark.name] = why if match is None else match.why_nobody
        on_message(f"{benchmark.name} is left out: {left_out[benchmark.name]}")
    comparison = Comparison(tuple(outcomes), left_out)
    if folder is not None:
        folders.finish(folder, comparison)
    return comparison


def _try_build(benchmark: BenchmarkProblem) -> tuple[Problem | None, str]:
    """The world of a benchmark problem, or None and what is missing if its data are not there."""
    try:
        return build(benchmark), ""
    except InputError as error:
        if error.field != "data":
            raise
        return None, f"{error.value}; see docs/guide/data.md"


class Match:
    """Plays one problem."""

    def __init__(
        self,
        request: SuiteRequest,
        benchmark: BenchmarkProblem,
        problem: Problem,
        folder: Path | None,
        workers: int,
        bars: Bars,
    ) -> None:
        """Determine who plays, and who is compared with whom."""
        self.request, self.benchmark, self.problem = request, benchmark, problem
        self.folder, self.workers, self.bars = folder, workers, bars
        self.rows = Catalogue(problem.rewards.kind)
        reasons = {name: why_not(name, problem, request.engine) for name in request.agents}
        self.left_out = {name: why for name, why in reasons.items() if why}
        self.agents = [name for name in request.agents if name not in self.left_out]
        self.pairs = [(name, *pair) for name in self.agents for pair in benchmark.references(self.rows[name])]
        self.ours = list(dict.fromkeys([benchmark.main, *(reference for _, reference, _ in self.pairs)]))
        also = [name for name in benchmark.also if not why_not(name, problem, request.engine)]
        others_of_ours = [name for name in (*self.ours, *also) if name not in (benchmark.main, *self.agents)]
        self.pairs += [(name, benchmark.main, "ours") for name in others_of_ours]
        self.players = list(dict.fromkeys([*self.ours, *self.agents, *others_of_ours]))

    @property
    def why_nobody(self) -> str:
        """Why none of the agents asked for can play."""
        return "; ".join(f"{name}: {why}" for name, why in self.left_out.items())

    def outcome(self) -> Outcome:
        """Play the problem; return its rows, tuned rows and times."""
        regrets = self.regrets(self.players, "")
        spec = self.spec("", "quick")
        return Outcome(
            problem=self.benchmark.name,
            title=self.benchmark.title,
            rounds=spec.run.rounds,
            seed=spec.run.seed,
            yardstick=self.benchmark.yardstick,
            rows=tuple(held(*pair, regrets) for pair in self.pairs),
            tuned=self.tuned(regrets) if self.request.tuned else (),
            ours={name: estimate(regrets[name]).mean for name in self.ours},
            left_out=self.left_out,
            seconds={name: self.seconds(self.rows[name], spec.run.rounds) for name in self.players},
        )

    def seconds(self, agent: Agent, rounds: int) -> float:
        """Seconds per round and trial of an agent, in a batch."""
        return report.seconds(agent, self.problem, rounds=min(rounds, report.ROUNDS), trials=report.TRIALS)

    def tuned(self, published: Regrets) -> tuple[Row, ...]:
        """Rows with one setting for each agent, chosen on another seed; as published if that was best."""
        tried_names = [candidate for name in self.players for candidate in candidates(name)]
        best = chosen(self.players, self.regrets(tried_names, "-tuning", other_seed=True))
        changed = [choice for name, choice in best.items() if choice != name]
        reruns = self.regrets(changed, "-tuned")
        regrets = {name: reruns.get(choice, published[name]) for name, choice in best.items()}
        settings = {name: setting(name, choice) for name, choice in best.items()}
        return tuple(held(*pair, regrets, settings[pair[0]]) for pair in self.pairs)

    def spec(self, ending: str, kind: str, *, other_seed: bool = False) -> Spec:
        """The experiment for agents of one pace."""
        spec = with_run(
            self.benchmark.spec(), self.request.run_of(self.benchmark, kind, other_seed=other_seed)
        )
        end = "" if kind == "quick" else f"-{kind}"
        return spec.model_copy(update={"name": f"{self.benchmark.name}{ending}{end}"})

    def regrets(self, names: Iterable[str], ending: str, *, other_seed: bool = False) -> Regrets:
        """The regret of each after the last round, trial by trial."""
        regrets, twins = Regrets(), self.twins(names)
        for kind in PACES:
            agents = [name for name in dict.fromkeys(twins.values()) if pace(self.rows[name]) == kind]
            if agents:
                spec = self.spec(ending, kind, other_seed=other_seed)
                regrets |= self.run(with_run(spec, {"agents": agents}))
        return {name: regrets[twin] for name, twin in twins.items()}

    def twins(self, names: Iterable[str]) -> dict[str, str]:
        """For each agent the first with the same parts: two baselines may differ only for other rewards."""
        twins = dict[str, str]()
        for name in names:
            row, others = self.rows[name], dict.fromkeys(twins.values())
            twins[name] = next((other for other in others if row.same_as(self.rows[other])), name)
        return twins

    def run(self, spec: Spec) -> Regrets:
        """Run a spec, in the suite's folder if there is one; return the final regrets."""
        plan = prepare(checked(spec), workers=self.workers, problem=self.problem)
        with self.bars(spec.name) as progress:
            data = play(plan, progress) if self.folder is None else folders.kept(self.folder, plan, progress)
        final = data[LOSS].isel(round=-1)
        return {str(name): final.sel(agent=name).values for name in data["agent"].values}


def candidates(name: str) -> list[str]:
    """The names to try: the agent as published, then with each other value."""
    setting, values = setting_of(name)
    variants = [f"{name}:{setting}={value:g}" for value in values]
    return [name, *(candidate for candidate in variants if not _is_published(name, setting, candidate))]


def setting_of(name: str) -> tuple[str, tuple[float, ...]]:
    """The setting of an agent that is tuned, and its values; empty if it has none."""
    if name in BASELINES:
        return BASELINES[name].tuned, BASELINES[name].grid
    return ("level", LEVELS) if name in OURS else ("", ())


def _is_published(name: str, setting: str, spelled: str) -> bool:
    """Whether a value is that of the agent as published, which is in the list already."""
    row, value = EVERY[name], float(spelled.rpartition("=")[2])
    parts = row.denoiser, row.learner, row.chooser
    values = [vars(part)[setting] for part in parts if setting in vars(part)]
    return bool(values) and all(float(x) == value for x in values)


def chosen(names: Sequence[str], regrets: Mapping[str, Array]) -> dict[str, str]:
    """For each agent its candidate with the least mean regret; the first of equals."""
    return {
        name: min(candidates(name), key=lambda candidate: float(regrets[candidate].mean())) for name in names
    }


def setting(name: str, choice: str) -> str:
    """The chosen setting as text."""
    return choice.removeprefix(f"{name}:") if choice != name else "as published"
