"""The horizontal axis of a figure of a sweep: where each value stands, and what is written there.

Numbers stand at themselves, categories side by side. A value that is no number of the axis (`as told`, see
lab/field_words.py) stands at the number that it means where that is known, else to the right of all numbers.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from unfog.lab import field_words
from unfog.lab import sweep as sweeps
from unfog.lab.spec import Spec

MOST_TICKS = 8  # numbers that are all written at the axis
CLOSE = 0.15  # a share of the axis that a number takes
MOST_WORDS = 30  # categories that are
UPRIGHT = 3  # categories whose words stand side by side


class Axis(NamedTuple):
    """What is along the horizontal axis of all panels."""

    label: str
    ticks: dict[str, str]  # by value as text, in their order: what is written there
    values: list[float] | None  # None for categories
    apart: bool = False  # whether the last one is none of the numbers, and not joined to them


def axis_of(field: str, texts: Sequence[str], spec: Spec) -> Axis:
    """The axis of one field, whose values are given as text."""
    label = field_words.plain(field)
    odd = [text for text in texts if field_words.apart(field, text)]
    found = {text: float(text) for text in texts if text not in odd} if _numeric(field, spec) else {}
    if not found:
        return Axis(label, {text: field_words.value(field, text) for text in texts}, None)
    meant = field_words.meant(field, spec.problem)
    known = meant is not None and meant not in found.values()
    places = found | dict.fromkeys(odd, float(meant) if known and meant is not None else _beyond(found))
    order = sorted(places, key=places.__getitem__)
    ticks = {text: text if text in found else field_words.value(field, text) for text in order}
    if known:
        ticks |= {text: f"{meant:g}\n({ticks[text]})" for text in odd}
    values = [places[text] for text in order]
    if _law(values) == "symlog":
        label += f"\n(logarithmic from {min(value for value in values if value > 0):g} on)"
    return Axis(label, ticks, values, bool(odd) and not known)


def _numeric(field: str, spec: Spec) -> bool:
    return sweeps.numeric(sweeps.values(spec.sweep)[field])


def _beyond(found: Mapping[str, float]) -> float:
    """The next place after these numbers, in steps like theirs."""
    known = sorted(found.values())
    if known[0] > 0 and geometric(known):
        return known[-1] * known[-1] / known[-2]
    return known[-1] + ((known[-1] - known[0]) / (len(known) - 1) if len(known) > 1 else 1.0)


def scale(axes: Axes, axis: Axis) -> None:
    """Ticks at the values themselves where they are few; a logarithmic axis where they are far apart."""
    words = list(axis.ticks.values())
    if axis.values is None:
        if len(words) <= MOST_WORDS:
            slant = len(words) > UPRIGHT and max(map(len, words)) > 3
            slanted: dict[str, Any] = {"rotation": 30, "ha": "right"} if slant else {}
            axes.set_xticks(range(len(words)), words, **slanted)
        axes.set_xlim(-0.6, len(words) - 0.4)
        return
    ticks = dict(zip(axis.values, words, strict=True))
    above, law = [value for value in axis.values if value > 0], _law(axis.values)
    if law != "linear":
        told: dict[str, Any] = {"linthresh": min(above), "linscale": 0.5} if law == "symlog" else {}
        axes.set_xscale(law, **told)
        if len(ticks) > MOST_TICKS:
            wanted = np.geomspace(above[0], above[-1], MOST_TICKS // 2)
            ticks = {at: ticks[at] for at in (min(above, key=lambda v: abs(v - x)) for x in wanted)}
    if len(ticks) <= MOST_TICKS:
        axes.set_xticks(list(ticks), list(ticks.values()))
        axes.minorticks_off()


def _law(values: Sequence[float]) -> str:
    """The scale of numbers in increasing order: `linear`, `log`, or `symlog` where 0 is among them."""
    above = [value for value in values if value > 0]
    if min(values) < 0 or not (geometric(above) or _crowded(values)):
        return "linear"
    return "log" if len(above) == len(values) else "symlog"


def _crowded(values: Sequence[float]) -> bool:
    """Whether what is written at two of these numbers, in increasing order, would overlap."""
    return bool(len(values) > 2 and np.diff(values).min() < CLOSE * (values[-1] - values[0]))


def geometric(values: Sequence[float]) -> bool:
    """Whether numbers in increasing order are spread more evenly by their ratios than by their distances."""
    if len(values) < 3:
        return False
    gaps, ratios = np.diff(values), np.diff(np.log(values))
    return bool(ratios.std() / ratios.mean() < gaps.std() / gaps.mean() - 1e-9)
