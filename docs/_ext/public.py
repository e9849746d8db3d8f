"""The public names: those of `unfog`, and of each of its public modules."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

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
    "unfog.adapters.agent": "An agent in a loop of your own",
    "unfog.adapters.obp": "Logs for Open Bandit Pipeline",
    "unfog.denoise": "Denoisers: from a noisy context to a belief about the true one",
    "unfog.learn": "Learners: from rewards to a belief about what arms earn",
    "unfog.choose": "Choosers: from beliefs to an arm",
    "unfog.features": "Feature maps: what a reward is linear in",
    "unfog.worlds": "Problems to simulate",
    "unfog.testing": "Checks for parts of your own",
}
NAMED = {  # of modules that have no list of their own
    "unfog.adapters.sklearn": ("Denoiser",),
    "unfog.adapters.gymnasium": ("Env", "make"),
    "unfog.adapters.river": ("RiverPolicy", "evaluate"),
    "unfog.adapters.agent": ("Decider", "Choice"),
    "unfog.adapters.obp": ("to_obp",),
}
VALUES = {  # what has no docstring of its own
    "unfog.AGENTS": """Every named agent of the catalogue, an `Agent` by its name: [the list](agents.md).

>>> import unfog
>>> unfog.AGENTS["unfog"].denoiser
Exact(pairs=False)
>>> unfog.AGENTS["naive"].summary
'takes the noisy context for the true one'
""",
    "unfog.__version__": """The version that is installed, as a string.

>>> import unfog
>>> unfog.__version__.count(".")
2
""",
    "unfog.features.MapBuilder": """A function from actions (..., K, p) to a `FeatureMap`: what
`features=` of a problem takes besides a name.

>>> import numpy as np
>>> import unfog
>>> build = unfog.features.quadratic  # one of them
>>> build(np.ones((4, 2))).size  # four actions, contexts of two numbers
6
""",
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
        return f"unfog.{self.name}" if self.module != "unfog" and self.name in unfog.__all__ else ""


def module(name: str) -> Any:
    """A public module, by the name that readers use: `unfog.denoise` lies elsewhere."""
    last = name.removeprefix("unfog.")
    return getattr(unfog, last) if last in unfog.__all__ else import_module(name)


def names(of: str) -> Iterator[Name]:
    """Those of a module, other modules left out."""
    for name in NAMED.get(of) or module(of).__all__:
        if f"{of}.{name}" not in MODULES:
            yield Name(of, name)


def every() -> list[Name]:
    """All of them."""
    return [name for one in MODULES for name in names(one)]
