"""From a spec to a plan: every problem is built, every name looked up and the engine chosen once.

Everything that can be refused is refused here. What comes after (the command, its progress, the run and the
run folder) takes the plan and checks nothing again.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from unfog import simulation
from unfog.agents.agent import Agent
from unfog.agents.catalogue import AGENTS, Catalogue, select_rows
from unfog.lab import sweep as sweeps
from unfog.lab.spec import DEFAULTS, Spec, build_problem, describe, with_run
from unfog.lab.stopping import checkpoints, choose_reference
from unfog.simulation.executors import MOST_WORKERS, Executor
from unfog.validation import count
from unfog.worlds.problem import Problem

AGENTS_FIELD = "run.agents"  # the field that errors about names of agents mention


class ExperimentPlan(NamedTuple):
    """An experiment that is ready to run."""

    spec: Spec  # completed: defaults, engine, precision, and what a world determined itself
    labels: tuple[str, ...]  # of each job: what is appended to the agents' names
    work: simulation.Plan

    @property
    def problems(self) -> list[Problem]:
        """The problem of each job."""
        return [job.problem for job in self.work.jobs]

    @property
    def engine(self) -> str:
        """The engine, and why it was chosen."""
        return f"{self.work.engine.name}: {self.work.reason}"

    @property
    def note(self) -> str:
        """The note that every table and figure of the data must show."""
        return next((problem.note for problem in self.problems if problem.note), "")


def prepare(
    spec: Spec,
    *,
    workers: int = 1,
    executor: Executor | None = None,
    own: Sequence[Agent] = (),
    problem: Problem | None = None,
) -> ExperimentPlan:
    """Prepare a spec; `own` are agents defined by the caller, `problem` a problem that is built already."""
    count("workers", workers, most=MOST_WORKERS)
    settings = spec.settings()
    swept = sweeps.fields(spec.sweep)
    first = build_problem(settings[0][1], swept) if problem is None else problem
    names, rows = _agents(spec, first), {row.name: row for row in own}
    if len(settings) > 1:  # a mistyped name is found before thousands of worlds are built
        select_rows(names, AGENTS_FIELD, Catalogue(first.rewards.kind, own, first.knowledge().beyond_moments))
    built = [first, *(build_problem(fields, swept) for _, fields in settings[1:])]
    searches = spec.run.target_se is not None
    reference = choose_reference(names, spec.run.reference) if searches else None
    work = simulation.plan(
        built,
        [rows.get(name, name) for name in names],
        **spec.run.model_dump(exclude={"agents", "target_se", "reference"}),
        ends=checkpoints if searches else None,
        workers=workers,
        executor=executor,
        field=AGENTS_FIELD,
    )
    run_fields = {"agents": names, "engine": work.engine.name, "precision": work.jobs[0].precision}
    run_fields["reference"] = reference
    completed = spec.model_copy(update={"problem": _completed(spec, built[0])})
    return ExperimentPlan(with_run(completed, run_fields), tuple(label for label, _ in settings), work)


def _agents(spec: Spec, problem: Problem) -> list[str]:
    """The agents named, or the default ones without those that need a bias which the problem lacks."""
    names = spec.run.agents
    if "agents" in spec.run.model_fields_set or problem.has_bias:
        return names
    return [name for name in names if AGENTS[name].can.see_bias is None]


def _completed(spec: Spec, problem: Problem) -> dict[str, Any]:
    """The fields with defaults written out, so that a stored spec says everything even when they change."""
    fields = {**spec.problem, **(describe(problem) or {})}
    defaults = DEFAULTS.get(fields["kind"], {})
    return fields | {field: spec.problem.get(field, defaults[field]) for field in sweeps.fields(spec.sweep)}
