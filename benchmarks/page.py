"""The page of benchmarks and its picture, from the measurements alone.

    python benchmarks/page.py    # docs/notebook/benchmarks.md and docs/images/benchmarks.png

Reads benchmarks/results/cpu.json, which `compare.py` writes, and benchmarks/results/gpu.json, which `gpu.py`
writes, and benchmarks/results/live.json, which `live.py` writes, where there are such. Every number of the
page comes from there.
"""

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.live_page import live_section
from benchmarks.picture import picture
from benchmarks.wording import (
    ENGINES,
    KINDS,
    NAMES,
    RESULTS,
    ROOT,
    Row,
    batch,
    command,
    engines,
    gpu_speeds,
    item,
    live,
    measured,
    of_kind,
    plain,
    said,
    short,
    speed,
    spread,
    table,
    times,
)


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
        "(../images/benchmarks.png)",
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
    ours = [batch(cpu, engine) for engine in engines(cpu["engines"])]
    columns = [f"× in batch, {NAMES[row['engine']]}, {row['trials']} trials" for row in ours]
    head = ["row", "version", "what is used", "parameters", "µs a step", "min to max", "peak MB", "× live"]

    def cells(row: Row) -> list[str]:
        step = row["us_per_step"]
        ratios = [step["median"] / live(cpu), *(step["median"] * speed(engine) / 1e6 for engine in ours)]
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
        compiled = short(row["compile_s"], 2) if row["engine"] != "numpy" else "–"
        return [*about, *sizes, *pace, compiled, f"{row['peak_mb']:.0f}"]

    order = sorted(
        cpu["engines"], key=lambda row: (ENGINES.index(row["engine"]), row["decompose"], row["trials"])
    )
    return table([*head, "compile, s", "peak MB"], map(cells, order), left=2)


def break_even(cpu: Row) -> str:
    """When compiling pays, at the number of trials that suits each compiled engine best."""
    return said(" ".join(_pays(cpu, engine) for engine in engines(cpu["engines"]) if engine != "numpy"))


def _pays(cpu: Row, engine: str) -> str:
    whole, name = [row for row in cpu["engines"] if not row["decompose"]], NAMES[engine]
    best = max((row for row in whole if row["engine"] == engine), key=speed)
    numpy = next(row for row in whole if (row["engine"], row["trials"]) == ("numpy", best["trials"]))
    gain = 1 / speed(numpy) - 1 / speed(best)
    if gain <= 0:
        return f"Here {name} is no faster than NumPy, so compiling does not pay on this machine."
    rounds = best["compile_s"] / gain
    return f"""On one core, at {best["trials"]:,} trials, {name} is {times(speed(best) / speed(numpy))} as
        fast as NumPy and takes {short(best["peak_mb"] / numpy["peak_mb"], 2)} times the memory. Compiling
        takes {short(best["compile_s"], 2)} s for an agent, so without a warm cache it pays from about
        {short(rounds / 1e6, 2)} million trial-rounds on."""


def agents_section(cpu: Row) -> list[str]:
    """Every agent of the catalogue."""
    head = ["agent"]
    for row in (batch(cpu, engine) for engine in engines(cpu["agents"])):
        head += [f"{NAMES[row['engine']]}, {row['trials']:,} trials: /s", "min to max", "× plain loop"]
    found: dict[str, list[str]] = {}
    for row in sorted(cpu["agents"], key=lambda row: ENGINES.index(row["engine"])):
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
    columns = ("plain", *engines(rows))
    at = {(row[field], row["engine"]): row for row in rows}
    head = [symbol]
    for engine in columns:
        head += [NAMES[engine], "min to max", *(["ratio"] if engine != "plain" else [])]

    def cells(size: int) -> Iterable[str]:
        yield str(size)
        for engine in columns:
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
        about = [f"`{row['agent']}`", NAMES[row["engine"]], row.get("precision") or "float32"]
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
        command(
            "python benchmarks/gpu.py --out benchmarks/results/gpu.json --rounds 500 \\",
            "  --agents alg1,unfog,late,unknown-noise,gaps --kernel alg1,unfog,unfog-delayed,alg2-exact",
        ),
    ]


def gpu_notes(gpu: Row) -> list[str]:
    """Bandwidth, precision, and a million trials, where they were measured."""
    notes = []
    if share := gpu.get("scan_share_of_bandwidth"):
        notes.append(
            f"""By a count of what it must move (the root five times a round, the actions and the draws twice)
            the scan of Algorithm 1 uses {share:.0%} of the bandwidth of a large copy."""
        )
    if found := gpu.get("precision"):
        gap, se = found["float32_minus_float64"], found["se"]
        notes.append(f"""On the same random numbers float32 less float64 changes the mean regret by {gap:.3f}
            (standard error {se:.3f}) of {found["float64"]:.1f}, over {found["trials"]:,} trials;
            {found["same_to_1e-3"]:.0%} of
            the trials end the same to 0.001.""")
    notes += [
        f"""A million trials of 1000 rounds on {NAMES[row["engine"]]}: {row["seconds"]} s with
            its programs compiled or kept from the rows above, a
            curve of {row["curve"]} points, {row["stored_MB"]} MB stored."""
        for row in gpu.get("million_trials", [])
    ]
    return ["\n".join(map(item, notes))] if notes else []


def elsewhere() -> list[str]:
    """What is measured on other pages."""
    return [
        "## Measured elsewhere",
        item("""[Values of policies on logs](evaluation.md#how-good): coverage, errors against obp,
            what the denoiser adds, the worth of a sensor, a million rounds."""),
    ]


def page(cpu: Row, gpu: Row | None, live_rows: Row | None = None) -> str:
    """All of it."""
    sections = [heading(cpu), peers_section(cpu), live_section(live_rows), engines_section(cpu)]
    sections.append(agents_section(cpu))
    sections += [growth_section(cpu), gpu_section(cpu, gpu), elsewhere()]
    return "\n\n".join(part for section in sections for part in section) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cpu", type=Path, default=RESULTS / "cpu.json")
    parser.add_argument("--gpu", type=Path, default=RESULTS / "gpu.json", help="left out where it is missing")
    parser.add_argument("--live", type=Path, default=RESULTS / "live.json", help="likewise")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="the folder that is written to")
    given = parser.parse_args()
    cpu = json.loads(given.cpu.read_text())
    gpu = json.loads(given.gpu.read_text()) if given.gpu.exists() else None
    live_rows = json.loads(given.live.read_text()) if given.live.exists() else None
    for folder in ("images", "notebook"):
        (given.docs / folder).mkdir(parents=True, exist_ok=True)
    (given.docs / "notebook" / "benchmarks.md").write_text(page(cpu, gpu, live_rows))
    picture(cpu, gpu).savefig(given.docs / "images" / "benchmarks.png")


if __name__ == "__main__":
    main()
