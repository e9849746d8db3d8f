"""Numbers of the benchmarks as people read them, and the measurements the page and the picture share."""

from collections.abc import Iterable, Sequence
from math import floor, log10
from pathlib import Path
from textwrap import fill
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"

NAMES = {"plain": "plain loop", "numpy": "NumPy", "numba": "Numba", "jax": "JAX", "cuda": "one kernel"}
ENGINES = ("numpy", "numba", "jax")
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


def engines(rows: Iterable[Row]) -> list[str]:
    """Those of the engines that were measured, in their order."""
    there = {row["engine"] for row in rows}
    return [engine for engine in ENGINES if engine in there]


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
