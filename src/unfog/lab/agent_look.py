"""What an agent looks like in figures, and what all figures of runs say at their edges."""

import itertools
import textwrap
from typing import Any

import xarray as xr

from unfog.agents.catalogue import AGENTS, EVERY
from unfog.lab.spec import Spec
from unfog.look import COLOURS, DASHES

TITLE: dict[str, Any] = {"fontsize": 9, "loc": "left", "parse_math": False}
EDGE: dict[str, Any] = {"fontsize": 7, "color": "0.35", "x": 0.99, "ha": "right"}


def called(name: str) -> str:
    """An agent's name in a legend: the row's, and the learner where that is named too."""
    labels = {row.name: row.label for row in EVERY.values() if row.label}
    row = max((row for row in labels if name == row or name.startswith(f"{row}-")), key=len, default=None)
    if row is None:
        return name
    return labels[row] if name == row else f"{labels[row]}, {name.removeprefix(f'{row}-')}"


def places(labels: list[str]) -> list[int]:
    """A place in the list of styles for each label: a row's own, or the next that is free.

    There are fewer colours than rows: only those that come first have one of their own.
    """
    known = list(AGENTS)[: len(COLOURS)]
    taken = {known.index(label) for label in labels if label in known}
    free = (place for place in itertools.count() if place not in taken)
    return [known.index(label) if label in known else next(free) for label in labels]


def style(place: int) -> tuple[str, Any]:
    """Colour and dash; past eight the dashes shift against the colours."""
    size = len(COLOURS)
    return COLOURS[place % size], DASHES[(place + place // size) % size]


def heading(data: xr.Dataset, title: str, width: int = 70) -> str:
    """A title, with what must be said of the data."""
    said = [data.attrs["note"]] if "note" in data.attrs else []
    return "\n".join([*said, textwrap.fill(title, width)])


def averaged(data: xr.Dataset, spec: Spec) -> str:
    """What was averaged over."""
    trials = data.sizes["trial"]
    return f"mean of {trials} trial{'s'[: trials > 1]}, seed {spec.run.seed}"
