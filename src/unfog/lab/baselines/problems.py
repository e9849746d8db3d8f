"""The problems on which baselines are compared with our agents, and which of ours each is compared with.

Each is an experiment of the catalog with one value in place of a sweep. Regret is that of theory/regret.py:
reward lost against an oracle that knows theta and the bias and sees the noisy context or, in a world made of
data, which has no bias to know, against the best arm for the true context.

Which of our agents a baseline is compared with depends on which true contexts are revealed:

    wanted   to agents that use them, which are compared with `unfog-delayed`, the others with `unfog`
    none     to no agent: all are compared with `unfog`
    all      to all agents that can use them: all are compared with `unfog-delayed`
    some     likewise, one in ten: all are compared with `late`

An agent that is told the bias is compared with the same one, marked as told more. Unless true contexts are
revealed to it, it is also compared with `unfog-oracle`, which is told the bias too.
"""

from typing import Any, NamedTuple

import numpy as np

from unfog.agents.agent import Agent
from unfog.agents.base import Privilege
from unfog.agents.catalogue import Catalogue
from unfog.lab.spec import Spec, build_problem, catalog
from unfog.simulation import plan
from unfog.validation import InputError
from unfog.worlds.problem import Problem

ORACLE = "against who knows theta and the bias, and sees the noisy context (Bayesian oracle)"
TRUE_CONTEXT = "against the best action for the true context"
DEFAULT, DELAYED, LATE, KNOWN_BIAS = "unfog", "unfog-delayed", "late", "unfog-oracle"
OURS = (DEFAULT, DELAYED, LATE, KNOWN_BIAS)
PAPER = ("alg1", "alg2")  # the paper's own algorithms, which count as baselines
LOSS = "regret"
POINTS = 50  # rounds whose totals are kept
DEAR = ("feelgood",)  # each of their steps goes over every arm of every past round
PACES = {"quick": 10**9, "slow": 50, "dear": 10}  # the most trials of agents of each pace, unless told


class BenchmarkProblem(NamedTuple):
    """A problem of the suite."""

    name: str
    source: str  # an experiment of the catalog
    title: str
    trials: int  # unless told
    fields: tuple[tuple[str, Any], ...] = ()  # of the problem, instead of the source's
    revealed: str = "wanted"  # which true contexts are revealed: wanted, none, some or all
    also: tuple[str, ...] = ()  # our agents that are made for this problem
    yardstick: str = ORACLE  # what regret is measured against
    group: str = "trouble"

    def spec(self) -> Spec:
        """The experiment without a sweep; agents, rounds and seed are set later."""
        source = catalog()[self.source]
        run = source.run.model_copy(update={"trials": self.trials, "points": POINTS, "decompose": False})
        fields = source.problem | dict(self.fields)
        return Spec(name=self.name, title=self.title, problem=fields, run=run)

    @property
    def main(self) -> str:
        """Our main agent on this problem, which our other agents are compared with."""
        return {"some": LATE, "all": DELAYED}.get(self.revealed, DEFAULT)

    def references(self, agent: Agent) -> list[tuple[str, str]]:
        """Our agents that an agent is compared with, and whether it is told the same, more or less."""
        sees_context = agent.sees_context
        ours = DELAYED if sees_context and self.revealed == "wanted" else self.main
        if agent.can.see_bias is not None:
            return [(ours, "more")] if sees_context else [(ours, "more"), (KNOWN_BIAS, "same")]
        return [(ours, "same" if sees_context or ours == DEFAULT else "less")]


AIR: dict[str, Any] = {"yardstick": TRUE_CONTEXT, "group": "air", "also": ("temporal",)}

BENCHMARKS = {
    benchmark.name: benchmark
    for benchmark in (
        BenchmarkProblem(
            "fig1-gaussian", "fig1-gaussian", "Gaussian rewards (Fig. 1 left)", 200, group="paper"
        ),
        BenchmarkProblem(
            "fig1-logistic", "fig1-logistic", "Rewards of 0 or 1 (Fig. 1 centre)", 50, group="paper"
        ),
        BenchmarkProblem(
            "fig1-movielens",
            "fig1-movielens",
            "MovieLens-100K (Fig. 1 right)",
            100,
            (("ratings", "movielens"),),
            group="paper",
        ),
        BenchmarkProblem(
            "gaussian-correlated", "gaussian-correlated", "Correlated contexts and noise", 200, group="paper"
        ),
        BenchmarkProblem(
            "airquality-none",
            "airquality-reference",
            "Air Quality, no true context shown",
            100,
            (("revealed", 0.0),),
            "none",
            **AIR,
        ),
        BenchmarkProblem(
            "airquality-some",
            "airquality-reference",
            "Air Quality, one true context in ten shown",
            100,
            (("revealed", 0.1),),
            "some",
            **AIR,
        ),
        BenchmarkProblem(
            "airquality-all",
            "airquality-reference",
            "Air Quality, all true contexts shown",
            100,
            (("revealed", 1.0),),
            "all",
            **AIR,
        ),
        BenchmarkProblem(
            "heavy-tails", "heavy-tails", "Noise with outliers", 200, (("tails", 3),), also=("robust",)
        ),
        BenchmarkProblem(
            "drift", "drift", "A bias that walks", 200, (("drift_cov", 0.005),), also=("drift",)
        ),
        BenchmarkProblem(
            "missing",
            "missing",
            "Three coordinates in ten get lost",
            200,
            (("missing", 0.3),),
            also=("gaps",),
        ),
    )
}


def pace(agent: Agent) -> str:
    """How long an agent's rounds take: slow if it samples before each, dear if it is known to be slower."""
    if agent.name.partition(":")[0] in DEAR:
        return "dear"
    return "quick" if agent.can.sample is None else "slow"


def why_not(name: str, problem: Problem, engine: str = "numpy") -> str:
    """Why an agent cannot play a problem; empty where it can."""
    kind = problem.rewards.kind
    try:
        agent = Catalogue(kind)[name]
    except KeyError:
        return f"it has no learner for {kind} rewards"
    if agent.can.see_bias is not None and not problem.has_bias:
        return "it must be told the bias, and this world has none"
    if agent.awaits_context and problem.partial:
        return "it awaits every true context, and not all are shown"
    try:
        plan([problem], [name], rounds=1, trials=1, seed=0, engine=engine)
        _check_denoiser(agent, problem)
    except InputError as error:
        return str(error.value if error.field in ("agents", "engine") else error)
    return ""


def _check_denoiser(agent: Agent, problem: Problem) -> None:
    """Let the denoiser check that its settings fit these contexts, which a plan does not do."""
    known = problem.knowledge()
    privilege = None if agent.can.see_bias is None else Privilege(np.zeros_like(known.context_mean))
    agent.denoiser.setup(known, privilege)


def build(benchmark: BenchmarkProblem) -> Problem:
    """Build the world of a benchmark problem; raise InputError if its data set is missing."""
    problem = build_problem(benchmark.spec().problem)
    problem.knowledge()
    return problem
