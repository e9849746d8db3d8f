"""What the commands share: completion of names, a line for each listed item, and the plan of a run.

`unfog --install-completion` sets completion up: when Tab is pressed, the shell is told the names that begin
with what was typed so far. Heavy imports wait until Tab is pressed where a name belongs.
"""

import sys
from collections.abc import Iterable
from importlib import resources
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from unfog.lab.prepare import ExperimentPlan
    from unfog.lab.spec import Spec

ENGINES = {  # as `unfog list` describes them
    "numpy": "plays everything, on one core or several; the reference for the others",
    "numba": "one compiled kernel for CPUs: the same draws and results, faster (extra numba)",
    "jax": "compiled by JAX, on CPU or GPU, with random numbers of its own (extra jax)",
    "cuda": "one GPU kernel, for Gaussian problems with quadratic features (extra jax, a GPU)",
    "auto": "the fastest of these that can play the experiment here; it says which, and why",
}
FEATURES = {
    "per_arm": "an intercept and slopes for each arm: the commonest case",
    "slopes": "slopes for each arm, without intercepts",
    "product": "numbers of the action times those of the context, one by one",
    "quadratic": "products of numbers of action and context, squares included",
    "matrix": "for each arm a matrix of its own, times the context",
    "own": "every arm has a context of its own, and all share theta",
}
PROBLEMS = {
    "gaussian": "contexts and noise are Gaussian, rewards are plain numbers",
    "logistic": "the same with rewards of 0 or 1",
    "temporal": "contexts and a sensor that move in time",
    "post_serving": "a part of the context becomes known only after the decision",
    "recorded": "contexts from a CSV file of your own",
    "movielens": "films for users, from recorded ratings or a stand-in for them",
    "airquality": "the air of one street, measured by a cheap sensor and a good one",
    "heartsteps": "suggestions to take a walk, after a recorded study",
}
KINDS = (  # of `unfog list`
    "experiments",
    "problems",
    "agents",
    "baselines",
    "denoisers",
    "learners",
    "choosers",
    "features",
    "engines",
    "datasets",
)


def experiments(incomplete: str) -> list[str]:
    """Experiments that come with unfog, and suites."""
    files = resources.files("unfog.lab") / "catalog"
    names = [file.name.removesuffix(".toml") for file in files.iterdir() if file.name.endswith(".toml")]
    return _filter_by_prefix(incomplete, [*names, "baselines"])


def agents(incomplete: str) -> list[str]:
    """Agents and baselines; after a comma the next one."""
    from unfog.agents.catalogue import EVERY

    return _complete_list(incomplete, EVERY)


def policies(incomplete: str) -> list[str]:
    """What `unfog evaluate` can evaluate; after a comma the next one."""
    from unfog.agents.catalogue import EVERY
    from unfog.evaluation.policies import ALWAYS, FIXED

    return _complete_list(incomplete, [*FIXED, ALWAYS, *EVERY])


def engines(incomplete: str) -> list[str]:
    """Engines, which play the rounds."""
    return _filter_by_prefix(incomplete, ENGINES)


def precisions(incomplete: str) -> list[str]:
    """Precisions of the numbers in a compiled engine."""
    from unfog.simulation.job import PRECISIONS

    return _filter_by_prefix(incomplete, PRECISIONS)


def executors(incomplete: str) -> list[str]:
    """Executors, which say where rounds are played; for a cluster, the beginning of its address."""
    from unfog.simulation.executors import CLUSTERS, NAMES

    return _filter_by_prefix(incomplete, [*NAMES, *(f"{name}://" for name in CLUSTERS)])


def data(incomplete: str) -> list[str]:
    """Data sets."""
    from unfog.lab.datasets.files import DATASETS

    return _filter_by_prefix(incomplete, DATASETS)


def kinds(incomplete: str) -> list[str]:
    """What `unfog list` can list."""
    return _filter_by_prefix(incomplete, KINDS)


def _complete_list(incomplete: str, names: Iterable[str]) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _filter_by_prefix(last, names)]


def _filter_by_prefix(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))


def planned(spec: "Spec", workers: int | None, executor: str | None = None) -> "ExperimentPlan":
    """Prepare a spec, on all cores by default; report an engine that was chosen automatically, and why."""
    from unfog.lab.prepare import prepare
    from unfog.simulation.engines import AS_REQUESTED
    from unfog.simulation.executors import make_executor
    from unfog.simulation.executors.local import cores

    processes = cores() if workers is None else workers
    plan = prepare(spec, workers=processes, executor=make_executor(executor, workers))
    if plan.work.reason != AS_REQUESTED:
        typer.echo(f"engine {plan.engine}", err=True)
    return plan


def above(line: str) -> None:
    """Print a line on stderr above a progress bar, which rich arranges only for `print`."""
    print(line, file=sys.stderr)
