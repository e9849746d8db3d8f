"""Contextual bandits that see their context through noise: denoise, learn, choose.

The public names. They are imported when first used, so that `import unfog` is instant and needs no packages.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from unfog.version import __version__

if TYPE_CHECKING:
    from unfog import adapters, features, live, serve, testing, worlds
    from unfog.agents import choose, denoise, learn
    from unfog.agents.agent import Agent
    from unfog.agents.catalogue import AGENTS
    from unfog.bandit import Bandit
    from unfog.channel.context import Category, Cycle, Reading
    from unfog.channel.deconvolution import deconvolve
    from unfog.lab.baselines.suite import compare_baselines
    from unfog.lab.evaluate import evaluate
    from unfog.lab.figures import figure
    from unfog.lab.hypotheses import hypotheses
    from unfog.lab.report import summary, table
    from unfog.lab.run import open_run, run
    from unfog.lab.sensor import sensor_worth
    from unfog.validation import InputError
    from unfog.worlds.calibrated import calibrate
    from unfog.worlds.record import RecordedProblem
    from unfog.worlds.synthetic import GaussianProblem, LogisticProblem
    from unfog.worlds.temporal import TemporalProblem

_HOME = {
    "Category": "channel.context",
    "Cycle": "channel.context",
    "Reading": "channel.context",
    "AGENTS": "agents.catalogue",
    "Agent": "agents.agent",
    "Bandit": "bandit",
    "GaussianProblem": "worlds.synthetic",
    "InputError": "validation",
    "LogisticProblem": "worlds.synthetic",
    "RecordedProblem": "worlds.record",
    "TemporalProblem": "worlds.temporal",
    "calibrate": "worlds.calibrated",
    "compare_baselines": "lab.baselines.suite",
    "deconvolve": "channel.deconvolution",
    "evaluate": "lab.evaluate",
    "figure": "lab.figures",
    "hypotheses": "lab.hypotheses",
    "open_run": "lab.run",
    "run": "lab.run",
    "sensor_worth": "lab.sensor",
    "summary": "lab.report",
    "table": "lab.report",
}
_ROOMS = {
    "adapters": "adapters",
    "choose": "agents.choose",
    "denoise": "agents.denoise",
    "features": "features",
    "learn": "agents.learn",
    "live": "live",
    "serve": "serve",
    "testing": "testing",
    "worlds": "worlds",
}

__all__ = [
    "AGENTS",
    "Agent",
    "Bandit",
    "Category",
    "Cycle",
    "GaussianProblem",
    "InputError",
    "LogisticProblem",
    "Reading",
    "RecordedProblem",
    "TemporalProblem",
    "__version__",
    "adapters",
    "calibrate",
    "choose",
    "compare_baselines",
    "deconvolve",
    "denoise",
    "evaluate",
    "features",
    "figure",
    "hypotheses",
    "learn",
    "live",
    "open_run",
    "run",
    "sensor_worth",
    "serve",
    "summary",
    "table",
    "testing",
    "worlds",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"unfog.{_ROOMS[name]}")
    if name not in _HOME:
        raise AttributeError(f"module 'unfog' has no attribute {name!r}")
    try:
        return getattr(import_module(f"unfog.{_HOME[name]}"), name)
    except ModuleNotFoundError as error:
        from unfog._extras import hint

        message = hint(error)
        if message is None:
            raise
        raise ModuleNotFoundError(f"unfog.{name}: {message}", name=error.name) from None


def __dir__() -> list[str]:
    return __all__
