"""Warfarin: mistakes of each way to dose, and what denoising saves: pictures of docs/notebook/warfarin.md.

python docs/images/warfarin.py        # after benchmarks/warfarin.py
"""

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from unfog.plotting import COLOURS, DPI, PAGE, STYLE, save

HERE = Path(__file__).parent
RESULTS = HERE.parents[1] / "benchmarks/results/warfarin.json"
SHOWN = ("the record's own gaps", "30 % lost", "60 % lost")
POLICIES = {
    "medium": "medium dose for all",
    "clinical": "IWPC clinical",
    "complete": "agent, complete cases only",
    "naive": "agent, naive",
    "denoised": "agent, denoised",
    "line-naive": "best line, naive",
    "line-denoised": "best line, denoised",
    "pharmacogenetic": "IWPC pharmacogenetic",
    "pharmacogenetic-denoised": "the same, denoised",
}
SAVED = {
    "naive - denoised": "an agent that learns",
    "pharmacogenetic - pharmacogenetic-denoised": "the published algorithm",
}
PER = 1000  # patients
APART = 0.22  # rows, between what is drawn in one


def marks(axes: Axes, values: list[list[float]], series: int, of: int, scale: float, label: str) -> None:
    """Means with their intervals, a row each."""
    rows = [place + APART * (series - (of - 1) / 2) for place in range(len(values))]
    style: dict[str, Any] = {"fmt": "osD"[series], "color": COLOURS[(0, 1, 3)[series]], "label": label}
    halves = [scale * half for _, half in values]
    axes.errorbar(
        [scale * mean for mean, _ in values],
        rows,
        xerr=halves,
        markersize=4,
        capsize=2,
        linewidth=1.2,
        **style,
    )


def rows_of(axes: Axes, names: list[str]) -> None:
    """Names at the side, the first one above."""
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="x", color="0.9", linewidth=0.6)


def mistakes(rows: dict[tuple[str, str], Any]) -> Figure:
    """Wrong doses of each way to dose, in three scenes."""
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=(PAGE, 4.2), dpi=DPI, layout="constrained")
        axes = chart.subplots()
        for series, scene in enumerate(SHOWN):
            found = rows[scene, "bucket"]["policies"]
            marks(axes, [found[name]["wrong"] for name in POLICIES], series, len(SHOWN), 100, scene)
        rows_of(axes, list(POLICIES.values()))
        axes.set_xlabel("patients given a wrong dose, %")
        axes.legend(fontsize=8, loc="lower right")
    return chart


def saved(rows: dict[tuple[str, str], Any]) -> Figure:
    """Wrong doses that denoising saves, in all scenes."""
    scenes = [scene for scene, reward in rows if reward == "bucket"]
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=(PAGE, 3.4), dpi=DPI, layout="constrained")
        axes = chart.subplots()
        for series, (pair, label) in enumerate(SAVED.items()):
            values = [rows[scene, "bucket"]["differences"][pair]["wrong"] for scene in scenes]
            marks(axes, values, series, len(SAVED), PER, label)
        rows_of(axes, scenes)
        axes.axvline(0, color=COLOURS[2], linewidth=0.8)
        axes.set_xlabel("wrong doses saved by denoising, of 1,000 patients")
        axes.legend(fontsize=8, loc="upper right", title="denoising in front of", title_fontsize=8)
    return chart


def main() -> None:
    """Draw both."""
    found = json.loads(RESULTS.read_text("utf-8"))
    rows = {(row["scene"], row["reward"]): row for row in found["rows"]}
    for stem, chart in (("mistakes", mistakes(rows)), ("saved", saved(rows))):
        save(chart, HERE, f"warfarin-{stem}", ("png",))


if __name__ == "__main__":
    main()
