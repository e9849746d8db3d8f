"""Where the memory of a batch goes: terms with a name, and the fields to blame for them.

A term is so many bytes for each trial that is played side by side, and so many for the process whatever the
trials. It is there all the time, or in one stretch of the work, after which it is given back:

    start    the truth is made of its draws
    block    the rounds of a block are made
    round    an agent plays a round
    losses   what its rounds cost is read off

So the peak is what is there all the time and the most that any stretch takes besides. How many arrays of a
kind there are at a time was counted in the code and checked against measured peaks
(tests/simulate/test_memory.py): it needs to be right to a factor of two. Engines put their terms together
from these, and cut batches by the same.
"""

from collections.abc import Iterable, Sequence
from math import prod
from typing import NamedTuple

from unfog.agents.agent import Agent
from unfog.simulate.job import Job
from unfog.worlds.problem import Problem

NUMBER = 8  # bytes
ALWAYS, START, BLOCK, ROUND, LOSSES = "always", "start", "block", "round", "losses"
ACTIONS, DIM = ("problem.actions", "problem.dim"), ("problem.dim",)
PATHS = {  # draws of which there are some for every round, and the fields that say how many
    "walk": ("problem.drift_rounds", "problem.dim"),
    "path": ("problem.path_rounds", "problem.units", "problem.dim"),
}


class Term(NamedTuple):
    """Bytes that something takes."""

    what: str
    fields: tuple[str, ...]  # that it hangs on; none where it cannot be helped
    each: float = 0.0  # for a trial
    fixed: float = 0.0  # for the process
    when: str = ALWAYS

    def bytes(self, trials: int) -> int:
        """Of so many trials side by side."""
        return int(self.fixed + self.each * trials)


def counted(terms: Iterable[Term], trials: int) -> list[Term]:
    """The terms that are there at the peak: those of all the time, and those of the largest stretch."""
    by_stretch: dict[str, list[Term]] = {}
    for term in terms:
        by_stretch.setdefault(term.when, []).append(term)
    always = by_stretch.pop(ALWAYS, [])
    return always + max(by_stretch.values(), key=lambda some: _total(some, trials), default=[])


def peak(terms: Iterable[Term], trials: int) -> int:
    """Bytes of a process that plays so many trials side by side."""
    return _total(counted(terms, trials), trials)


def for_each(terms: Iterable[Term]) -> int:
    """Bytes that one trial more takes."""
    return max(1, peak([term._replace(fixed=0.0) for term in terms], 1))


def _total(terms: Sequence[Term], trials: int) -> int:
    return sum(term.bytes(trials) for term in terms)


def truth(problem: Problem) -> list[Term]:
    """What nature fixes once a trial, and what it is made of."""
    draws = {name: prod(one.shape) for name, one in problem.truth_draws().items()}
    terms = [
        Term("the features of all actions", ACTIONS, NUMBER * problem.table()),
        Term("the draws of actions", ACTIONS, 2 * NUMBER * draws.get("actions", 0), when=START),
    ]
    for name, fields in PATHS.items():
        if name in draws:
            terms.append(Term("the path of every trial", fields, NUMBER * draws[name]))
            terms.append(
                Term("the steps that paths are made of", fields, 3 * NUMBER * draws[name], when=START)
            )
    return terms


def world(job: Job, copies: int) -> list[Term]:
    """What all trials share: covariances with their roots, so many of theta's, and samples of contexts."""
    known = job.problem.knowledge()
    samples = sum(atoms.size for atoms in (known.contexts, known.sample) if atoms is not None)
    return [
        Term("what is told of theta", ACTIONS, fixed=copies * NUMBER * theta(job)),
        Term("what is told of contexts", DIM, fixed=NUMBER * (15 * known.context_cov.size + 3 * samples)),
    ]


def theta(job: Job) -> int:
    """Numbers of a covariance of theta: m^2, or those of its blocks; of what a learner keeps, whole."""
    known = job.problem.knowledge()
    whole = any(agent.learner.dense for agent in job.agents)
    return known.prior_mean.size**2 if whole else known.prior_cov.size


def beliefs(job: Job, *, kept: float, made: float) -> list[Term]:
    """Matrices of every trial: so many times what a learner keeps, and makes while it learns."""
    squares = [agent.learner.squares for agent in job.agents]
    own = max(agent.denoiser.squares for agent in job.agents)
    dim, units = job.problem.knowledge().context_mean.shape[0], job.problem.several
    states = (units * (dim + 2) ** 2 if units > 1 else dim**2) * own
    return [
        Term("what agents believe of theta", ACTIONS, kept * NUMBER * theta(job) * sum(squares)),
        Term("updates of theta", ACTIONS, made * NUMBER * theta(job) * max(squares), when=ROUND),
        Term("what agents believe of biases", ("problem.units", *DIM), 3 * NUMBER * states),
    ]


def history(agent: Agent, job: Job) -> int:
    """Numbers that an agent keeps for a trial, and needs for a step, where its learner keeps past rounds."""
    return 0 if agent.keeps is None else agent.keeps.room(job.problem.knowledge(), job.rounds)


def weights(job: Job) -> int:
    """Numbers that a posterior over a sample of contexts takes for a moment, in one round of a trial."""
    known = job.problem.knowledge()
    return 3 * max(0 if atoms is None else len(atoms) for atoms in (known.contexts, known.sample))


def drawn(job: Job) -> int:
    """Standard normals that the choosers take in a round, at most."""
    known = job.problem.knowledge()
    return max(agent.chooser.normals(known) for agent in job.agents)


def curves(job: Job) -> int:
    """Bytes of the curves of one trial."""
    return NUMBER * len(job.agents) * len(job.losses) * len(job.grid)
