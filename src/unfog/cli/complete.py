"""What a shell is told when Tab is pressed: names that begin with what was typed so far.

`unfog --install-completion` sets it up. Heavy imports wait until Tab is pressed where a name belongs.
"""

from collections.abc import Iterable
from importlib import resources

KINDS = ("experiments", "agents", "rivals", "learners", "choosers", "datasets")  # of `unfog list`


def experiments(incomplete: str) -> list[str]:
    """Experiments that come with unfog, and suites."""
    files = resources.files("unfog.lab") / "catalog"
    found = [file.name.removesuffix(".toml") for file in files.iterdir() if file.name.endswith(".toml")]
    return _beginning(incomplete, [*found, "rivals"])


def agents(incomplete: str) -> list[str]:
    """Agents and rivals; after a comma the next one."""
    from unfog.agents.catalogue import EVERY

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _beginning(last, EVERY)]


def data(incomplete: str) -> list[str]:
    """Data sets."""
    from unfog.lab.datasets import DATASETS

    return _beginning(incomplete, DATASETS)


def kinds(incomplete: str) -> list[str]:
    """What `unfog list` can list."""
    return _beginning(incomplete, KINDS)


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))
