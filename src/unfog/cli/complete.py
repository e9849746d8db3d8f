"""What a shell is told when Tab is pressed: names that begin with what was typed so far.

`unfog --install-completion` sets it up. Heavy imports wait until Tab is pressed where a name belongs.
"""

from collections.abc import Iterable
from importlib import resources

from unfog.cli.words import ENGINES

KINDS = (  # of `unfog list`
    "experiments",
    "problems",
    "agents",
    "rivals",
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
    found = [file.name.removesuffix(".toml") for file in files.iterdir() if file.name.endswith(".toml")]
    return _beginning(incomplete, [*found, "rivals"])


def agents(incomplete: str) -> list[str]:
    """Agents and rivals; after a comma the next one."""
    from unfog.agents.catalogue import EVERY

    return _after_comma(incomplete, EVERY)


def policies(incomplete: str) -> list[str]:
    """What `unfog evaluate` can evaluate; after a comma the next one."""
    from unfog.agents.catalogue import EVERY
    from unfog.evaluation.policies import ALWAYS, FIXED

    return _after_comma(incomplete, [*FIXED, ALWAYS, *EVERY])


def engines(incomplete: str) -> list[str]:
    """Who can play the rounds."""
    return _beginning(incomplete, ENGINES)


def precisions(incomplete: str) -> list[str]:
    """Of numbers in a compiled engine."""
    from unfog.simulation.job import PRECISIONS

    return _beginning(incomplete, PRECISIONS)


def executors(incomplete: str) -> list[str]:
    """Where rounds can be played; of a cluster what its address begins with."""
    from unfog.simulation.executors import CLUSTERS, NAMES

    return _beginning(incomplete, [*NAMES, *(f"{name}://" for name in CLUSTERS)])


def data(incomplete: str) -> list[str]:
    """Data sets."""
    from unfog.lab.datasets import DATASETS

    return _beginning(incomplete, DATASETS)


def kinds(incomplete: str) -> list[str]:
    """What `unfog list` can list."""
    return _beginning(incomplete, KINDS)


def _after_comma(incomplete: str, names: Iterable[str]) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _beginning(last, names)]


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))
