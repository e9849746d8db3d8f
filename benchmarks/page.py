"""The page of benchmarks and its picture, from the measurements alone.

    python benchmarks/page.py    # docs/benchmarks.md and docs/images/benchmarks.png

Reads benchmarks/results/cpu.json, which `compare.py` writes, and benchmarks/results/gpu.json, which `gpu.py`
writes, where there is one. Every number of the page comes from there.
"""

import argparse
import json
from collections.abc import Iterable, Sequence
from math import floor, log10
from pathlib import Path
from textwrap import fill
from typing import Any, TypeAlias

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

Row: TypeAlias = dict[str, Any]

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"

NAMES = {"plain": "plain loop", "numpy": "NumPy", "jax": "JAX", "chip": "one kernel"}
BASELINES = ("unfog", "numpy")  # rows of the peers' table that are no libraries of bandits
KINDS = {
    "shared": "One theta for all arms, one exact posterior draw a round: the same algorithm as ours, so the "
    "ratio is the price of the implementation and of what it does besides",
    "shared, a draw per arm": "One posterior for all arms, but a draw of theta for each arm, so correlations "
    "between arms are lost: close to Thompson sampling, not the same law",
    "disjoint": "A theta for each arm: K posteriors, another and larger model, so the ratio says what it "
    "costs to use the library on this problem, not how well it is written",
    "disjoint, UCB": "A theta for each arm and an upper bound in place of a draw: another model and another "
    "rule",
    "shared, approximate": "One weight vector for all arms, learnt by gradient steps on bootstrap copies: an "
    "approximation, not a posterior",
}


# --- numbers and tables


def short(value: float, digits: int = 3) -> str:
    """A number with so many significant digits."""
    if value <= 0:
        return "0"
    places = digits - 1 - floor(log10(value))
    return f"{round(value, places):,.{max(0, places)}f}"


def times(ratio: float) -> str:
    """A ratio, as in 12×."""
    return f"{short(ratio, 2 if ratio < 100 else 3)}×"


def spread(found: Row) -> str:
    """Least to most over the repeats."""
    return f"{short(found['min'])} to {short(found['max'])}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table in Markdown, its first columns flush left."""
    rule = ["---" if column < left else "---:" for column in range(len(head))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *rows))


def said(text: str) -> str:
    """A paragraph."""
    return fill(" ".join(text.split()), 110, break_long_words=False, break_on_hyphens=False)


def item(text: str) -> str:
    """An item of a list."""
    text = " ".join(text.split())
    return fill(
        text, 110, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def command(*lines: str) -> str:
    """What to type."""
    return "\n".join(["```sh", *lines, "```"])


# --- what the measurements say


def speed(row: Row) -> float:
    """Trial-rounds a second, the median over repeats."""
    return float(row["rounds_per_s"]["median"])


def plain(cpu: Row) -> float:
    """Of the plain loop."""
    return speed(cpu["plain"][0])


def batch(cpu: Row, engine: str) -> Row:
    """Algorithm 1 in batch, at the size that all agents are measured at."""
    return next(row for row in cpu["agents"] if (row["agent"], row["engine"]) == ("alg1", engine))


def measured(cpu: Row) -> list[Row]:
    """The rows of the peers that did not fail, the fastest first."""
    rows = [row for row in cpu["peers"]["rows"] if row["error"] is None]
    return sorted(rows, key=lambda row: float(row["us_per_step"]["median"]))


def live(cpu: Row) -> float:
    """Microseconds of unfog's own step."""
    return next(row["us_per_step"]["median"] for row in measured(cpu) if row["peer"] == "unfog")


def of_kind(cpu: Row, kind: str) -> list[Row]:
    """The libraries whose parameters hang together in this way."""
    return [row for row in measured(cpu) if row["parameters"] == kind and row["peer"] not in BASELINES]


def gpu_speeds(row: Row) -> Row:
    """In millions of trial-rounds a second."""
    values = sorted(row["M_rounds_per_s"])
    return {"median": values[len(values) // 2], "min": values[0], "max": values[-1]}


# --- the page


def heading(cpu: Row) -> list[str]:
    """What, where and with what."""
    where, kept = cpu["machine"], cpu["versions"]
    versions = ", ".join(f"{name} {version}" for name, version in kept.items())
    parts = ["# Benchmarks"]
    if cpu["quick"]:
        parts.append("**A smoke test: the sizes are tiny and the numbers mean nothing.**")
    parts += [
        said("""All CPU numbers come from one run on one core, every row in a process of its own; medians over
            repeats, with the least and the most beside them. This page is made from the measurements by
            `benchmarks/page.py`. To make it anew:"""),
        command("python benchmarks/compare.py", "python benchmarks/page.py"),
        said(f"""Machine: {where["processor"]}, {where["cores"]} cores of which one is used,
            {where["system"]}. Load average {where["load"]:.2f} before the run and {cpu["load_after"]:.2f}
            after it (the run itself is 1); it took {cpu["seconds"]:.0f} s. Versions: {versions}."""),
        "![Time per step next to other libraries; trial-rounds a second over trials, arms and dimensions]"
        "(images/benchmarks.png)",
    ]
    return parts


def peers_section(cpu: Row) -> list[str]:
    """The live step, next to other libraries."""
    if cpu["peers"] is None:
        return []
    sizes = cpu["peers"]["settings"]
    return [
        "## One step, live, next to other libraries",
        said(f"""Linear Thompson sampling with m = {sizes["m"]} given features for each of K = {sizes["K"]}
            arms, prior N(0, I), unit noise: choose an arm, take in its reward. {sizes["rounds"]} rounds,
            {sizes["repeats"]} repeats, one thread. unfog's row is its learner and its chooser on the same
            rows of features, without denoising, because the others have none. The last three columns say how
            many times as fast unfog is: live, and for a trial-round of Algorithm 1 in batch."""),
        peers_table(cpu),
        *failures(cpu),
        *meaning(cpu),
        command(
            "bash benchmarks/peers/setup.sh",
            "benchmarks/out/peers-venv/bin/python benchmarks/peers/run.py --out benchmarks/out/peers.json",
        ),
    ]


def peers_table(cpu: Row) -> str:
    """Time, memory and ratios of every row."""
    engines = [batch(cpu, engine) for engine in ("numpy", "jax")]
    columns = [f"× in batch, {NAMES[row['engine']]}, {row['trials']} trials" for row in engines]
    head = ["row", "version", "what is used", "parameters", "µs a step", "min to max", "peak MB", "× live"]

    def cells(row: Row) -> list[str]:
        step = row["us_per_step"]
        ratios = [step["median"] / live(cpu), *(step["median"] * speed(engine) / 1e6 for engine in engines)]
        name = f"**{row['peer']}**" if row["peer"] == "unfog" else row["peer"]
        about = [name, row["version"], f"`{row['model']}`", row["parameters"]]
        return [*about, short(step["median"]), spread(step), f"{row['peak_mb']:.0f}", *map(times, ratios)]

    return table(head + columns, map(cells, measured(cpu)), left=4)


def failures(cpu: Row) -> list[str]:
    """Rows without a number, and those that did no better than chance."""
    failed = [row for row in cpu["peers"]["rows"] if row["error"] is not None]
    idle = [row["peer"] for row in measured(cpu) if not row["learned"]]
    notes = [item(f"`{row['peer']}` could not be measured: {row['error']}") for row in failed]
    if idle:
        notes.append(item(f"Did no better than chance in the check: {', '.join(idle)}."))
    else:
        notes.append(
            item("Every measured row passes the check that it learns: its last rewards beat chance.")
        )
    return ["\n".join(notes)]


def meaning(cpu: Row) -> list[str]:
    """What each ratio means, by the kind of model."""
    items = []
    for kind, text in KINDS.items():
        rows = of_kind(cpu, kind)
        if rows:
            ratios = [f"{row['peer']} ({times(row['us_per_step']['median'] / live(cpu))})" for row in rows]
            items.append(item(f"{', '.join(ratios)}. {text}."))
    return [
        "What the ratio of the live step means depends on the model:",
        "\n".join(items),
        said("""The ratios in batch are of another kind. Here the others run one trial at a time; unfog runs
            many side by side, and its time for a trial-round includes simulating the world (contexts, noise,
            rewards), denoising, and the regret, which the peers' time does not. They hold for experiments of
            many trials, not for one agent in production: there the live column is the one to read."""),
    ]


def engines_section(cpu: Row) -> list[str]:
    """Throughput over trials."""
    row = cpu["plain"][0]
    return [
        "## Many trials at once",
        said(f"""Algorithm 1 in the paper's first experiment (d = {row["dim"]}, K = {row["arms"]}), the world
            included. The yardstick is the same algorithm as one would write it first (`benchmarks/plain.py`):
            {short(plain(cpu))} trial-rounds a second ({spread(row["rounds_per_s"])}),
            {row["peak_mb"]:.0f} MB. It computes the regret whole, as do the rows without "split"; those with
            it also compute the parts of the regret. Compile time is the first run less a later one, with an
            empty cache; it is not in the speeds. Precision is float64 throughout."""),
        engines_table(cpu),
        break_even(cpu),
        command("python -m benchmarks.engine_worker jax --trials 1000 --rounds 500 --decompose  # one row"),
    ]


def engines_table(cpu: Row) -> str:
    """Every engine at every number of trials."""
    head = ["engine", "regret", "trials", "rounds", "trial-rounds/s", "min to max", "× plain loop"]

    def cells(row: Row) -> list[str]:
        about = [NAMES[row["engine"]], "split" if row["decompose"] else "whole"]
        sizes = [f"{row['trials']:,}", f"{row['rounds']:,}"]
        pace = [short(speed(row)), spread(row["rounds_per_s"]), times(speed(row) / plain(cpu))]
        compiled = short(row["compile_s"], 2) if row["engine"] == "jax" else "–"
        return [*about, *sizes, *pace, compiled, f"{row['peak_mb']:.0f}"]

    order = sorted(
        cpu["engines"], key=lambda row: (row["engine"] != "numpy", row["decompose"], row["trials"])
    )
    return table([*head, "compile, s", "peak MB"], map(cells, order), left=2)


def break_even(cpu: Row) -> str:
    """When compiling pays, at the number of trials that suits JAX best."""
    whole = [row for row in cpu["engines"] if not row["decompose"]]
    jax = max((row for row in whole if row["engine"] == "jax"), key=speed)
    numpy = next(row for row in whole if (row["engine"], row["trials"]) == ("numpy", jax["trials"]))
    gain = 1 / speed(numpy) - 1 / speed(jax)
    if gain <= 0:
        return said("Here JAX is no faster than NumPy, so compiling does not pay on this machine.")
    rounds = jax["compile_s"] / gain
    return said(f"""On one core, at {jax["trials"]:,} trials, JAX is {times(speed(jax) / speed(numpy))} as
        fast as NumPy and takes {short(jax["peak_mb"] / numpy["peak_mb"], 2)} times the memory. Compiling
        takes {short(jax["compile_s"], 2)} s for an agent, so without a warm cache it pays from about
        {short(rounds / 1e6, 2)} million trial-rounds on.""")


def agents_section(cpu: Row) -> list[str]:
    """Every agent of the catalogue."""
    engines = [batch(cpu, engine) for engine in ("numpy", "jax")]
    head = ["agent"]
    for row in engines:
        head += [f"{NAMES[row['engine']]}, {row['trials']:,} trials: /s", "min to max", "× plain loop"]
    found: dict[str, list[str]] = {}
    for row in sorted(cpu["agents"], key=lambda row: bool(row["engine"] != "numpy")):
        cells = [short(speed(row)), spread(row["rounds_per_s"]), times(speed(row) / plain(cpu))]
        found.setdefault(row["agent"], []).extend(cells)
    return [
        "## Every agent",
        said("""Trial-rounds a second, the regret whole. The plain loop is Algorithm 1, whatever the agent:
            for the others the ratio says how they compare with it, not with a plain loop of their own."""),
        table(head, [[f"`{name}`", *cells] for name, cells in found.items()]),
    ]


def growth_section(cpu: Row) -> list[str]:
    """More arms, more dimensions."""
    sizes = ", ".join(
        f"{NAMES[row['engine']]} {row['trials']:,}"
        for row in cpu["arms"]
        if row["arms"] == cpu["arms"][0]["arms"]
    )
    return [
        "## Growth",
        said(f"""Algorithm 1, the regret whole, trial-rounds a second, with more arms K and more dimensions d
            (features m = 3d). Trials: {sizes}. The ratio is to the plain loop at the same size."""),
        growth_table(cpu["arms"], "arms", "K"),
        growth_table(cpu["dim"], "dim", "d"),
    ]


def growth_table(rows: list[Row], field: str, symbol: str) -> str:
    """The engines side by side at every size."""
    engines = ("plain", "numpy", "jax")
    at = {(row[field], row["engine"]): row for row in rows}
    head = [symbol]
    for engine in engines:
        head += [NAMES[engine], "min to max", *(["ratio"] if engine != "plain" else [])]

    def cells(size: int) -> Iterable[str]:
        yield str(size)
        for engine in engines:
            row = at[size, engine]
            yield from (short(speed(row)), spread(row["rounds_per_s"]))
            if engine != "plain":
                yield times(speed(row) / speed(at[size, "plain"]))

    return table(head, [list(cells(size)) for size in sorted({row[field] for row in rows})])


def gpu_section(cpu: Row, gpu: Row | None) -> list[str]:
    """The compiled engines on a GPU."""
    if gpu is None:
        return []
    versions = ", ".join(f"{name} {version}" for name, version in gpu["versions"].items())
    head = ["agent", "engine", "precision", "regret", "trials", "rounds", "million trial-rounds/s"]

    def cells(row: Row) -> list[str]:
        found = gpu_speeds(row)
        about = [f"`{row['agent']}`", NAMES[row["engine"]], row.get("precision") or "–"]
        sizes = ["split" if row["decompose"] else "whole", f"{row['trials']:,}", f"{row['rounds']:,}"]
        pace = [short(found["median"]), spread(found), short(row["compile_s"], 2)]
        return [*about, *sizes, *pace, times(found["median"] * 1e6 / plain(cpu))]

    return [
        "## On a GPU",
        said(f"""{gpu["kind"]}, {versions}; a large copy moves {gpu["copy_TB_per_s"]} TB/s. The ratio is to
            the plain loop on one core of the machine above: a GPU is set against one core, which flatters it
            by as many cores as one would otherwise use."""),
        table([*head, "min to max", "compile, s", "× plain loop"], map(cells, gpu["rows"]), left=4),
        *gpu_notes(gpu),
        command("python benchmarks/gpu.py --out benchmarks/results/gpu.json"),
    ]


def gpu_notes(gpu: Row) -> list[str]:
    """Bandwidth, precision, and a million trials, where they were measured."""
    notes = []
    if share := gpu.get("scan_share_of_bandwidth"):
        notes.append(
            f"The scan of Algorithm 1 moves {share:.0%} of the bytes a second that a large copy does."
        )
    if found := gpu.get("precision"):
        gap, se = found["float32_minus_float64"], found["se"]
        notes.append(f"""On the same random numbers float32 less float64 changes the mean regret by {gap:.3f}
            (standard error {se:.3f}) of {found["float64"]:.1f}, over {found["trials"]:,} trials;
            {found["same_to_1e-3"]:.0%} of
            the trials end the same to 0.001.""")
    notes += [
        f"""A million trials of 1000 rounds on {NAMES[row["engine"]]}: {row["seconds"]} s with compiling, a
            curve of {row["curve"]} points, {row["stored_MB"]} MB stored."""
        for row in gpu.get("million_trials", [])
    ]
    return ["\n".join(map(item, notes))] if notes else []


def page(cpu: Row, gpu: Row | None) -> str:
    """All of it."""
    sections = [heading(cpu), peers_section(cpu), engines_section(cpu), agents_section(cpu)]
    sections += [growth_section(cpu), gpu_section(cpu, gpu)]
    return "\n\n".join(part for section in sections for part in section) + "\n"


# --- the picture

COLOURS = {"plain": "#000000", "numpy": "#0072B2", "jax": "#D55E00", "chip": "#009E73", "peer": "#B5B5B5"}
MARKERS = {"plain": "^", "numpy": "o", "jax": "s", "chip": "D"}
STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
}
PACE = "trial-rounds per second"


def picture(cpu: Row, gpu: Row | None) -> Figure:
    """The peers and the throughput above, growth below, each row with margins of its own."""
    with mpl.rc_context(STYLE):
        chart = Figure(figsize=(7.6, 5.8), layout=ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06))
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
    for engine in ("numpy", "jax"):
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
    for engine in ("chip", "jax") if gpu else ():
        draw_gpu(axes, gpu or {}, engine)
    for engine in ("jax", "numpy"):
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
    for engine in ("jax", "numpy", "plain"):
        of_engine = [row for row in rows if row["engine"] == engine]
        trials = of_engine[0]["trials"]
        line(axes, of_engine, field, NAMES[engine] + (f", {trials:,} trials" if trials > 1 else ""))
    sizes = sorted({row[field] for row in rows})
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cpu", type=Path, default=RESULTS / "cpu.json")
    parser.add_argument("--gpu", type=Path, default=RESULTS / "gpu.json", help="left out where it is missing")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="the folder that is written to")
    given = parser.parse_args()
    cpu = json.loads(given.cpu.read_text())
    gpu = json.loads(given.gpu.read_text()) if given.gpu.exists() else None
    (given.docs / "images").mkdir(parents=True, exist_ok=True)
    (given.docs / "benchmarks.md").write_text(page(cpu, gpu))
    picture(cpu, gpu).savefig(given.docs / "images" / "benchmarks.png", dpi=200)


if __name__ == "__main__":
    main()
