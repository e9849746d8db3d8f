"""The picture of the benchmarks: peers, throughput over trials, growth with arms and dimensions."""

from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from benchmarks.wording import (
    BASELINES,
    NAMES,
    Row,
    batch,
    engines,
    gpu_speeds,
    measured,
    plain,
    short,
    speed,
)
from unfog import plotting

BLUE, BLACK, GREEN, PINK, RED = (plotting.COLOURS[i] for i in (0, 2, 3, 4, 6))
COLOURS = {"plain": BLACK, "numpy": BLUE, "numba": PINK, "jax": RED, "cuda": GREEN, "peer": "#B5B5B5"}
MARKERS = {"plain": "^", "numpy": "o", "numba": "v", "jax": "s", "cuda": "D"}
STYLE: dict[Any, Any] = {
    **plotting.STYLE,
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "legend.fontsize": 7,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
}
PAGE, DPI = plotting.PAGE, plotting.DPI
PACE = "trial-rounds per second"


def picture(cpu: Row, gpu: Row | None) -> Figure:
    """The peers and the throughput above, growth below, each row with margins of its own."""
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=(PAGE, 5.8), dpi=DPI, layout=ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06))
        halves: Any = chart.subfigures(2, 1, height_ratios=(1.1, 1.0))
        above, below = halves
        if cpu["peers"] is None:
            draw_trials(above.subplots(), cpu, gpu)
        else:
            left, right = above.subplots(1, 2)
            draw_peers(left, cpu)
            draw_trials(right, cpu, gpu)
        left, right = below.subplots(1, 2, sharey=True)
        draw_growth(left, cpu["arms"], "arms")
        draw_growth(right, cpu["dim"], "dim")
        left.set(title="Growth with arms", xlabel="arms K", ylabel=PACE)
        right.set(title="Growth with dimensions", xlabel="context dimensions d (features m = 3d)")
        right.legend(loc="center left", bbox_to_anchor=(0.0, 0.46))
    return chart


def bars(cpu: Row) -> list[tuple[str, float, str]]:
    """Label, microseconds and colour of every bar, the slowest first."""
    found: list[tuple[str, float, str]] = []
    for row in measured(cpu):
        ours = row["peer"] == "unfog"
        name = str({"unfog": "unfog, live", "numpy": "plain NumPy"}.get(row["peer"], row["peer"]))
        label = name if row["peer"] in BASELINES else f"{name} {row['version']}"
        found.append((label, float(row["us_per_step"]["median"]), COLOURS["numpy" if ours else "peer"]))
    for engine in engines(cpu["engines"]):
        row = batch(cpu, engine)
        label = f"unfog, batch of {row['trials']:,}, {NAMES[engine]}"
        found.append((label, 1e6 / speed(row), COLOURS[engine]))
    return sorted(found, key=lambda bar: -bar[1])


def draw_peers(axes: Axes, cpu: Row) -> None:
    """Time per step, on a log scale, each bar with its number."""
    found = bars(cpu)
    values = [value for _, value, _ in found]
    axes.barh(range(len(found)), values, color=[colour for *_, colour in found], height=0.72)
    for place, value in enumerate(values):
        axes.text(value * 1.12, place, short(value), va="center", fontsize=7)
    axes.set_yticks(range(len(found)), [label for label, *_ in found], fontsize=7)
    axes.tick_params(axis="y", length=0)
    axes.set(xscale="log", xlabel="time per step (µs)", title="One step of linear Thompson sampling")
    axes.set_xlim(min(values) / 2, max(values) * 3.5)
    note = "in colour: unfog\n(batches simulate\nthe world as well)"
    axes.text(0.99, 0.97, note, transform=axes.transAxes, ha="right", va="top", fontsize=7, color="0.35")


def line(axes: Axes, rows: list[Row], field: str, label: str, dash: str = "-") -> None:
    """An engine's median over a field, with the least and the most of the repeats."""
    rows = sorted(rows, key=lambda row: float(row[field]))
    engine = rows[0]["engine"]
    places = [row[field] for row in rows]
    style: dict[str, Any] = {"color": COLOURS[engine], "marker": MARKERS[engine], "linestyle": dash}
    axes.plot(places, [speed(row) for row in rows], label=label, **style)
    low, high = ([row["rounds_per_s"][end] for row in rows] for end in ("min", "max"))
    axes.vlines(places, low, high, color=COLOURS[engine], linewidth=0.9)


def draw_trials(axes: Axes, cpu: Row, gpu: Row | None) -> None:
    """Throughput over trials, in the order of height."""
    for engine in ("cuda", "jax") if gpu else ():
        draw_gpu(axes, gpu or {}, engine)
    for engine in reversed(engines(cpu["engines"])):
        for split, dash in ((False, "-"), (True, ":")):
            rows = [r for r in cpu["engines"] if (r["engine"], r["decompose"]) == (engine, split)]
            line(axes, rows, "trials", NAMES[engine] + (", regret split" if split else ""), dash)
    axes.axhline(plain(cpu), color=COLOURS["plain"], linestyle="--", linewidth=1, label="plain loop")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="trials",
        ylabel=PACE,
        title="Throughput of Algorithm 1",
    )
    if gpu:
        axes.set_ylim(top=1e13)  # room for the legend above the lines
    axes.legend(**({"loc": "upper left"} if gpu else {"loc": "lower right", "bbox_to_anchor": (1.0, 0.08)}))


def draw_gpu(axes: Axes, gpu: Row, engine: str) -> None:
    """What a GPU reaches, as single points."""
    rows = [
        row
        for row in gpu["rows"]
        if (row["agent"], row["engine"], row["decompose"]) == ("alg1", engine, False)
        and row.get("precision") != "float64"
    ]
    pace = [gpu_speeds(row)["median"] * 1e6 for row in rows]
    style: dict[str, Any] = {"color": COLOURS[engine], "marker": "*", "markersize": 9, "linestyle": "none"}
    if rows:
        label = f"{NAMES[engine]}, {gpu['kind'].removeprefix('NVIDIA ')}"
        axes.plot([row["trials"] for row in rows], pace, label=label, **style)


def draw_growth(axes: Axes, rows: list[Row], field: str) -> None:
    """Throughput over a size, one line an engine."""
    for engine in (*reversed(engines(rows)), "plain"):
        of_engine = [row for row in rows if row["engine"] == engine]
        trials = of_engine[0]["trials"]
        line(axes, of_engine, field, NAMES[engine] + (f", {trials:,} trials" if trials > 1 else ""))
    sizes = sorted({row[field] for row in rows})
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
