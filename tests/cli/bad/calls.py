"""Command lines that a command does not take, and folders that no run made."""

import random

from tests.cli.bad.case import LONG, Case
from tests.cli.bad.logs import table

SMALL = ["--rounds", "3", "--trials", "2", "--workers", "1"]
ODD = ["", " ", "-", "--", "x", LONG, "nan", "-1", "0", "1e9", "9" * 5000, "\x00", "a\x00b", "é", "\udcff"]
ODD += ["a\nb", "/dev/zero", "/dev/null/x", "x.partial", "/proc/x", "file/x", "file", "pipe.toml", ".", "/"]
PATHS = [*ODD, "fig1-gausian", "baselinez", "/dev/zero", "pipe.toml", "folder.toml", "nowhere.toml", "file"]
AGENTS = ["alg1", "oracle", "unfog", "alg1-exat", "orcale", "", " ", ",", "alg1,alg1", LONG, "a:b", "-", "--"]
AGENTS += ["alg1:x=1", "alg1-hetero-ucb:quantile=2", "drift:step=1e-320", "drift:step=1e400", "\x00"]
FOLDERS = ["file", "/dev/zero", LONG, "a\x00b"]
COUNTS = ["--rounds", "--trials", "--seed", "--workers"]
OF_EVALUATE = ["--columns", "--channel", "--policies", "--level", "--estimators", "--intervals", "--arm"]
# A list stands for one of its words; two words in a row are two words.
LINES: list[list[str | list[str]]] = [
    ["run", PATHS],
    ["run", PATHS, "--problems", ODD],
    ["run", "fig1-gaussian", *SMALL, "--agents", AGENTS, "--agents", AGENTS],
    ["run", "fig1-gaussian", *SMALL, COUNTS, ["-3", "x", "1.5", "9" * 5000]],
    ["run", "fig1-gaussian", *SMALL, ["--engine", "--precision", "--data"], ODD],
    ["run", "fig1-gaussian", *SMALL, "--out", ODD],
    ["run", "baselines", "--problems", ODD, "--agents", AGENTS],
    ["run", "baselines", *SMALL, "--problems", "drift", "--agents", "orcale", "--out", ODD],
    [["show", "plot"], PATHS],
    ["plot", PATHS, "--out", ODD],
    ["evaluate", PATHS, "--channel", ODD],
    ["evaluate", "log.csv", OF_EVALUATE, ODD],
    ["bounds", PATHS, *SMALL, "--mismatch", ["-1", "x"]],
    ["bounds", "bounds-delayed", *SMALL, "--out", FOLDERS],
    ["check", "posterior", PATHS],
    ["check", "posterior", ["--learners", "--agent", "--rounds", "--chains", "--draws"], [*ODD[:5], LONG]],
    ["check", ODD],
    ["data", ["fetch", "list", *ODD], ODD],
    ["data", "list", "--data", ODD],
    ["data", "fetch", "movielens", "--url", ODD, "--into", "data"],
    ["reproduce", PATHS, "--out", ["file", "figures", LONG]],
    ["reproduce", "fig-actions", *SMALL, "--runs", FOLDERS],
    ["list", ODD],
    [ODD, ODD],
]
DAMAGED = [b"", b"{}", b"[]", b"null", b"[" * 5000, b"\xff", b'{"curves": 1, "spec": 2}', b'{"a": ' * 3000]
KEPT = ["run.json", "curves.nc", "spec.toml", "suite.json", "table.json"]


def command_line(chance: random.Random, _: list[str]) -> Case:
    """Words that a command does not take."""
    words = [word if isinstance(word, str) else chance.choice(word) for word in chance.choice(LINES)]
    files = {"file": b"x", "folder.toml/x": b"", "log.csv": table(chance, [])}
    return Case(words, files, ("pipe.toml",))


def run_folder(chance: random.Random, _: list[str]) -> Case:
    """A folder that no run made."""
    files = {f"r/{name}": chance.choice(DAMAGED) for name in chance.sample(KEPT, chance.randrange(1, 5))}
    pipes = (f"r/{chance.choice(KEPT)}",) if chance.random() < 0.2 else ()
    whole = {"r/x": b"", **{name: text for name, text in files.items() if name not in pipes}}
    return Case([chance.choice(["show", "plot"]), "r"], whole, pipes)
