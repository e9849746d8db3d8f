"""Engines, which play the rounds of a batch, and what each costs: `auto` takes the one that ends first.

Each engine is a module of its own, imported when it is needed. It can play any batch of a job in any process:
an executor decides which and where.

The estimate of seconds is linear: an agent takes

    start + rounds (call batches + trials (each + root m^2 + arm K m))

seconds, and if its learner keeps all past rounds, `past` for every multiplication of its steps, which on
compiled engines work on the whole history from the first round on. Parts that take longer than those of the
paper's agents declare by how much (`cost`, as measured with NumPy for d = 5 and K = 40): rounds take 1 + cost
times as long. Each engine's coefficients were fitted by hand to benchmarks/results, and a test holds them to
a factor of three of every measurement there: they need to be right only to the factor that separates the
engines.

Memory is estimated by terms, each with a name and the fields to blame for it. A term has bytes for each trial
that is played side by side, and bytes for the process whatever the trials. They are allocated all the time,
or in one phase of the work, after which they are freed:

    start    the truth is computed from its draws
    block    the rounds of a block are generated
    round    an agent plays a round
    losses   the losses of its rounds are computed

So the peak is what is allocated all the time, plus the most that any phase takes. How many arrays of a kind
there are at a time was counted in the code and checked against measured peaks
(tests/simulation/test_memory.py): it needs to be right to a factor of two. Engines assemble their terms from
the functions here, and use them to choose the size of batches, too.
"""

from collections.abc import Iterable, Sequence
from importlib import import_module
from math import prod
from typing import Any, NamedTuple, Protocol

from unfog.agents.agent import Agent
from unfog.simulation.job import Job, Part, Tick
from unfog.validation import InputError, one_of
from unfog.worlds.problem import Problem

NAMES = ("numpy", "numba", "jax", "cuda")
AUTO, AS_REQUESTED = "auto", "as told"
CANDIDATES = NAMES  # for `auto`
STEPS_A_CALL = 4  # the call of a learner's step takes a fourth of that of a round without steps
NUMBER = 8  # bytes
ALWAYS, START, BLOCK, ROUND, LOSSES = "always", "start", "block", "round", "losses"
ACTIONS, DIM = ("problem.actions", "problem.dim"), ("problem.dim",)
PATHS = {  # draws for every round, and the fields that determine their number
    "walk": ("problem.drift_rounds", "problem.dim"),
    "path": ("problem.path_rounds", "problem.units", "problem.dim"),
}


class MemoryTerm(NamedTuple):
    """A term of the memory estimate."""

    what: str
    fields: tuple[str, ...]  # that it depends on; none if it is unavoidable
    each: float = 0.0  # for a trial
    fixed: float = 0.0  # for the process
    when: str = ALWAYS

    def bytes(self, trials: int) -> int:
        """Bytes for so many trials side by side."""
        return int(self.fixed + self.each * trials)


class Cost(NamedTuple):
    """Seconds: to start (compile), for a round of a batch, and for a trial of a round."""

    batch: int  # trials at most
    start: float
    call: float
    each: float
    root: float  # times m^2
    arm: float  # times K m
    past: float  # times the multiplications of a learner's steps
    share: float  # of the run's rounds that its steps work on, on average
    parts: float = 1.0  # times the cost that parts declare for NumPy

    def seconds(self, job: Job, trials: int, processes: int = 1) -> float:
        """The estimate for a job; processes beyond the number of batches have nothing to do."""
        return sum(self._agent_seconds(job, agent, trials, processes) for agent in job.agents)

    def _agent_seconds(self, job: Job, agent: Agent, trials: int, processes: int) -> float:
        known, chain = job.problem.knowledge(), agent.can.sample
        m, arms, batches = known.prior_mean.shape[0], job.problem.arms(), -(-trials // self.batch)
        trial, call = self.each + self.root * known.prior_cov.size + self.arm * arms * m, self.call
        if chain is not None:
            trial += self.past * chain.steps * chain.work(known) * self.share * job.rounds
            call *= 1 + chain.steps / STEPS_A_CALL
        slow = 1 + self.parts * (agent.denoiser.cost + agent.learner.cost)
        return self.start + job.rounds * slow * (call * batches + trials * trial) / min(processes, batches)


class Engine(Protocol):
    """A way to play rounds. Engines hold no state: they travel to other processes by pickle."""

    name: str
    packages: tuple[str, ...]  # those besides NumPy whose versions decide results
    shares_work: bool  # whether several processes are faster than one; not if one uses the whole device

    @property
    def label(self) -> str:
        """Its name and, if there is a choice, the device it runs on."""
        return self.name

    def refuse(self, job: Job) -> None:
        """Raise InputError if it cannot play the job."""
        ...

    def settle(self, precision: str | None) -> str | None:
        """The precision it computes in, given the one that was requested, if any."""
        return precision

    def seconds(self, job: Job, trials: int, workers: int = 1) -> float:
        """The estimated seconds."""
        ...

    def batch(self, job: Job, trials: int) -> int:
        """How many trials to play side by side, for any number of workers."""
        ...

    def terms(self, job: Job) -> list[MemoryTerm]:
        """The terms of the memory of one of its processes."""
        ...

    def device(self) -> int | None:
        """Bytes of memory of the device; None if it uses the machine's own."""
        return None

    def run(self, job: Job, trials: range, tick: Tick) -> Part:
        """Cumulative losses of these trials."""
        ...


def check_name(name: Any, field: str = "engine") -> str:
    """Return the name of an engine, or `auto`; raise for any other."""
    return one_of(field, name, (*NAMES, AUTO))


def engine(name: str) -> Engine:
    """The engine of this name; its packages are imported now."""
    module = "numba.engine" if name == "numba" else name
    engine: Engine = import_module(f"{__name__}.{module}").ENGINE
    return engine


def choose(jobs: Sequence[Job], trials: int, workers: int, name: str) -> tuple[Engine, str]:
    """The engine that plays all of these jobs, which differ only in their problem, and the reason."""
    if name == AUTO:
        return _choose_cheapest(jobs, trials, workers)
    backend = engine(name)
    for job in jobs:
        backend.refuse(job)
    return backend, AS_REQUESTED


def _choose_cheapest(jobs: Sequence[Job], trials: int, workers: int) -> tuple[Engine, str]:
    """The engine with the shortest estimate, of those that can play the jobs."""
    candidates: list[tuple[float, Engine]] = []
    failures: list[tuple[str, InputError | ModuleNotFoundError]] = []
    for name in CANDIDATES:
        try:
            candidate, _ = choose(jobs, trials, workers, name)
            candidates.append((sum(candidate.seconds(job, trials, workers) for job in jobs), candidate))
        except (InputError, ModuleNotFoundError) as error:
            failures.append((name, error))
    if not candidates:
        errors = [error for _, error in failures]
        raise next((e for e in errors if isinstance(e, ModuleNotFoundError)), errors[0])
    estimates = ", ".join(f"{candidate.label} about {seconds:.1f} s" for seconds, candidate in candidates)
    excluded = "".join(f"; {_describe_exclusion(name, error)}" for name, error in failures)
    return min(candidates, key=lambda one: one[0])[1], f"estimated to finish first ({estimates}){excluded}"


def _describe_exclusion(name: str, error: InputError | ModuleNotFoundError) -> str:
    """Why an engine is not a candidate, in a few words."""
    if isinstance(error, ModuleNotFoundError):
        return f"not {name} ({error.name} is not installed)"
    return str(error.value) if error.field == "engine" else f"not {name} ({error})"


def counted(terms: Iterable[MemoryTerm], trials: int) -> list[MemoryTerm]:
    """The terms at the peak: those that are always there, and those of the largest phase."""
    by_stretch: dict[str, list[MemoryTerm]] = {}
    for term in terms:
        by_stretch.setdefault(term.when, []).append(term)
    always = by_stretch.pop(ALWAYS, [])
    return always + max(by_stretch.values(), key=lambda phase: _total_bytes(phase, trials), default=[])


def peak(terms: Iterable[MemoryTerm], trials: int) -> int:
    """Bytes of a process that plays so many trials side by side."""
    return _total_bytes(counted(terms, trials), trials)


def for_each(terms: Iterable[MemoryTerm]) -> int:
    """Bytes that one more trial takes."""
    return max(1, peak([term._replace(fixed=0.0) for term in terms], 1))


def _total_bytes(terms: Sequence[MemoryTerm], trials: int) -> int:
    return sum(term.bytes(trials) for term in terms)


def truth(problem: Problem) -> list[MemoryTerm]:
    """The terms of a trial's truth, and of the draws it is computed from."""
    draws = {name: prod(one.shape) for name, one in problem.truth_draws().items()}
    terms = [
        MemoryTerm("the features of all actions", ACTIONS, NUMBER * problem.table()),
        MemoryTerm("the draws of actions", ACTIONS, 2 * NUMBER * draws.get("actions", 0), when=START),
    ]
    for name, fields in PATHS.items():
        if name in draws:
            terms.append(MemoryTerm("the path of every trial", fields, NUMBER * draws[name]))
            terms.append(
                MemoryTerm("the steps that paths are made of", fields, 3 * NUMBER * draws[name], when=START)
            )
    return terms


def world(job: Job, copies: int) -> list[MemoryTerm]:
    """The terms that all trials share: covariances with their roots, and samples of contexts."""
    known = job.problem.knowledge()
    samples = sum(atoms.size for atoms in (known.contexts, known.sample) if atoms is not None)
    return [
        MemoryTerm("what is told of theta", ACTIONS, fixed=copies * NUMBER * theta(job)),
        MemoryTerm(
            "what is told of contexts", DIM, fixed=NUMBER * (15 * known.context_cov.size + 3 * samples)
        ),
    ]


def theta(job: Job) -> int:
    """Numbers in a covariance of theta: m^2, or those of its blocks if no learner needs it dense."""
    known = job.problem.knowledge()
    is_dense = any(agent.learner.dense for agent in job.agents)
    return known.prior_mean.size**2 if is_dense else known.prior_cov.size


def beliefs(job: Job, *, kept: float, made: float) -> list[MemoryTerm]:
    """The terms of beliefs; `kept` and `made` count the copies of matrices kept and made while learning."""
    squares = [agent.learner.squares for agent in job.agents]
    denoiser_squares = max(agent.denoiser.squares for agent in job.agents)
    dim, units = job.problem.knowledge().context_mean.shape[0], job.problem.several
    states = (units * (dim + 2) ** 2 if units > 1 else dim**2) * denoiser_squares
    return [
        MemoryTerm("what agents believe of theta", ACTIONS, kept * NUMBER * theta(job) * sum(squares)),
        MemoryTerm("updates of theta", ACTIONS, made * NUMBER * theta(job) * max(squares), when=ROUND),
        MemoryTerm("what agents believe of biases", ("problem.units", *DIM), 3 * NUMBER * states),
    ]


def history(agent: Agent, job: Job) -> int:
    """Numbers that an agent stores for a trial, and needs for a step, if its learner keeps past rounds."""
    keeps = agent.can.keep_rounds
    return 0 if keeps is None else keeps.memory_size(job.problem.knowledge(), job.rounds)


def weights(job: Job) -> int:
    """Temporary numbers of a posterior over a sample of contexts, in one round of a trial."""
    known = job.problem.knowledge()
    return 3 * max(0 if atoms is None else len(atoms) for atoms in (known.contexts, known.sample))


def drawn(job: Job) -> int:
    """The most standard normals that a chooser needs in a round."""
    known = job.problem.knowledge()
    return max(agent.chooser.normals(known) for agent in job.agents)


def curves(job: Job) -> int:
    """Bytes of the curves of one trial."""
    return NUMBER * len(job.agents) * len(job.losses) * len(job.grid)
