"""The public names: those of `unfog`, of its public modules, and of modules that pages tell readers of."""

import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

from docs._ext.values import EXAMPLES, VALUES

import unfog

MODULES = {  # in the order of the Reference: what each is for
    "unfog": "The names at the top: problems, runs, tables, figures, calibration, logs",
    "unfog.live": "Decisions for real, kept in one file",
    "unfog.serve": "The client of a service",
    "unfog.adapters": "The denoiser in front of other libraries",
    "unfog.adapters.sklearn": "The denoiser as a scikit-learn transformer",
    "unfog.adapters.gymnasium": "Problems as gymnasium environments",
    "unfog.adapters.river": "Agents as river policies",
    "unfog.adapters.coba": "Problems, agents and logs in coba",
    "unfog.adapters.simulation": "An agent in a loop of your own",
    "unfog.adapters.obp": "Logs for Open Bandit Pipeline",
    "unfog.denoise": "Denoisers: from a noisy context to a belief about the true one",
    "unfog.learn": "Learners: from rewards to a belief about what arms earn",
    "unfog.choose": "Choosers: from beliefs to an arm",
    "unfog.features": "Feature maps: what a reward is linear in",
    "unfog.worlds": "Problems to simulate, and what a problem of your own is made of",
    "unfog.simulation": "Runs that come back as arrays and leave no files, and where they are played",
    "unfog.channel": "What agents are told of a problem, and lines of sensors",
    "unfog.theory": "Bounds on regret, and means with their standard errors",
    "unfog.agents.base": "The contracts of an agent's parts, and what parts of your own are written with",
    "unfog.agents.round": "One round of an agent, step by step",
    "unfog.lab": "Problems made of data, and the look of figures",
    "unfog.testing": "Checks for parts of your own",
}
NAMED = {  # of modules that have no list of their own, or one in another order than theirs
    "unfog.adapters.sklearn": ("Denoiser",),
    "unfog.adapters.gymnasium": ("Env", "make"),
    "unfog.adapters.river": ("RiverPolicy", "evaluate"),
    "unfog.adapters.simulation": ("Decider", "Choice"),
    "unfog.adapters.obp": ("to_obp",),
    "unfog.simulation": ("play", "Curves", "plan", "Plan", "Gathering", "MOST_SEED", "MOST_TRIALS"),
    "unfog.channel": (),
    "unfog.theory": (),
    "unfog.agents.base": ("Denoiser", "Learner", "Chooser", "View", "Privilege", "Evidence"),
    "unfog.agents.round": (
        "Observation",
        "Decision",
        "start",
        "decide",
        "observe",
        "reward",
        "reveal",
        "probabilities",
        "value_of_reveal",
    ),
    "unfog.lab": (),
}
BESIDE: dict[
    str, dict[str, tuple[str, ...] | None]
] = {  # modules whose names stand on the page of one above: which of their names are public
    "unfog.features": {"unfog.features.quadrature": ("error_estimate",)},
    "unfog.worlds": {
        "unfog.worlds.composed": ("Composed", "Parts", "described", "arms", "Noisy"),
        "unfog.worlds.measurement": ("make_measurement",),
    },
    "unfog.simulation": {
        "unfog.simulation.executors": ("Executor", "WorkerDiedError"),
        "unfog.simulation.executors.local": ("Serial", "Processes"),
        "unfog.simulation.executors.dask": ("Dask",),
        "unfog.simulation.executors.ray": ("Ray",),
        "unfog.simulation.engines.numba.support": ("why_not",),
    },
    "unfog.channel": {
        "unfog.channel.knowledge": ("Knowledge",),
        "unfog.channel.calibration": ("Affine", "affine"),
    },
    "unfog.theory": {
        "unfog.theory.bounds": None,  # its own list
        "unfog.theory.conditions": ("Case", "Condition", "LinearMap", "linear_case"),
        "unfog.maths.statistics": ("Estimate", "estimate"),
    },
    "unfog.agents.round": {"unfog.agents.catalogue": ("Catalogue",)},
    "unfog.agents.base": {
        "unfog.agents.learn.conjugate": ("reward_variance",),
        "unfog.agents.choose.greedy": ("check_probability", "expected_scores", "certain_choice", "best"),
        "unfog.maths.arrays": ("Array", "Ints"),
        "unfog.maths.gaussian": ("Gaussian", "from_moments"),
        "unfog.maths.random": ("uniforms",),
        "unfog.validation": ("InputError", "Numbers", "not_negative", "positive"),
    },
    "unfog.lab": {
        "unfog.lab.datasets.airquality": ("AirQuality", "AirLog", "air_log"),
        "unfog.lab.datasets.heartsteps": ("HeartSteps",),
        "unfog.lab.datasets.movielens": ("MovieLens",),
        "unfog.lab.datasets.recorded": ("RecordedFile",),
        "unfog.paper.warfarin": ("COORDINATES", "Errors", "Patients"),
        "unfog.paper.warfarin_study": ("Outcome", "compare", "interval", "log"),
        "unfog.lab.labels": ("LOOKS",),
        "unfog.plotting": ("COLOURS", "DASHES", "STYLE"),
    },
}


class Name(NamedTuple):
    """A public name."""

    module: str
    name: str

    @property
    def full(self) -> str:
        """Where a reader finds it."""
        return f"{self.module}.{self.name}"

    @property
    def found(self) -> Any:
        """What it is the name of."""
        return getattr(module(self.module), self.name)

    @property
    def also(self) -> str:
        """The same thing at the top of unfog, where it is there too."""
        above = self.module != "unfog" and self.name in unfog.__all__
        return f"unfog.{self.name}" if above and getattr(unfog, self.name) is self.found else ""

    @property
    def said(self) -> str:
        """Its docstring, its own and not that of a class above, or what stands for it."""
        if self.full in VALUES:
            return VALUES[self.full]
        own = vars(self.found).get("__doc__") if inspect.isclass(self.found) else self.found.__doc__
        more = EXAMPLES.get(self.full)
        return inspect.cleandoc(own or "") + (f"\n\n{more}" if more else "")


def module(name: str) -> Any:
    """A public module, by the name that readers use: `unfog.denoise` lies elsewhere."""
    last = name.removeprefix("unfog.")
    return getattr(unfog, last) if last in unfog.__all__ else import_module(name)


def names(of: str) -> Iterator[Name]:
    """Those of a module, and of those beside it, other modules left out."""
    for one, told in {of: NAMED.get(of), **BESIDE.get(of, {})}.items():
        for name in module(one).__all__ if told is None else told:
            if not inspect.ismodule(getattr(module(one), name)):
                yield Name(one, name)


def every() -> list[Name]:
    """All of them."""
    return [name for one in MODULES for name in names(one)]
