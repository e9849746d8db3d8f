"""Mutation testing: change an operator or a number of the package, run the tests that call it, see one fail.

    python tests/mutants.py cover out.json [pytest arguments]       which tests call which functions
    python tests/mutants.py run out.json results.json [--count 300] [--seed 1] [--seconds 25]

`cover` runs the quick tests once. It notes which functions in ROOMS each test calls, and how long it takes.
`run` draws mutants with a seed. Each is tried with the tests that call the changed function, the quickest
first, until these take so many seconds. It is killed if one of them fails. If none does it has survived: the
change makes no difference, or the tests do not guard that line.
"""

import argparse
import ast
import importlib.abc
import importlib.machinery
import json
import os
import random
import signal
import sys
import threading
import time
import types
from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src"
ROOMS = ("unfog/maths", "unfog/agents", "unfog/live/state.py")
SWAPS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.Pow: ("**", "*"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}
PLAIN = ["-m", "not slow and not soak", "-q", "-p", "no:cacheprovider"]
FORKED = ["-x", "--no-header", "-W", "ignore::pytest.PytestAssertRewriteWarning"]


class Mutant(NamedTuple):
    """One change of one line."""

    path: str  # below SOURCES
    line: int
    column: int
    old: str
    new: str
    function: str  # path and first line of the innermost function around it, or the path alone

    @property
    def text(self) -> str:
        """As it is reported."""
        return f"{self.path}:{self.line}:{self.column}: {self.old} -> {self.new}"

    def source(self) -> str:
        """The whole module with this change."""
        lines = (SOURCES / self.path).read_text(encoding="utf-8").split("\n")
        line = lines[self.line - 1].encode()
        assert line[self.column :].startswith(self.old.encode()), self.text
        changed = line[: self.column] + self.new.encode() + line[self.column + len(self.old.encode()) :]
        lines[self.line - 1] = changed.decode()
        return "\n".join(lines)


def modules() -> list[Path]:
    """The files of the rooms."""
    found = [SOURCES / room for room in ROOMS]
    return sorted(file for one in found for file in ([one] if one.suffix else one.rglob("*.py")))


class Finder:
    """Finds the mutants of a module. Annotations and messages have none."""

    def __init__(self, file: Path) -> None:
        self.path = file.relative_to(SOURCES).as_posix()
        self.text = file.read_text(encoding="utf-8")
        self.lines = [line.encode() for line in self.text.split("\n")]

    def mutants(self) -> Iterator[Mutant]:
        """All of them, in the order of the syntax tree."""
        for statement in ast.parse(self.text).body:
            if not isinstance(statement, ast.If):  # imports for type checkers
                yield from self._below(statement, self.path)

    def _below(self, node: ast.AST, function: str) -> Iterator[Mutant]:
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
            return
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            decorators = getattr(node, "decorator_list", [])
            function = f"{self.path}:{min([node.lineno, *(one.lineno for one in decorators)])}"
        yield from (Mutant(self.path, *change, function) for change in self._changes(node))
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns", "decorator_list", "bases"):
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        yield from self._below(child, function)

    def _changes(self, node: ast.AST) -> Iterator[tuple[int, int, str, str]]:
        """Line, column, old and new text of each change of this node alone."""
        for operator, left, right in operands(node):
            old, new = SWAPS.get(type(operator), ("", ""))
            column = self._column(old, left, right) if old else None
            if column is not None:
                yield right.lineno, column, old, new
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
            old, new = ("-", "+") if isinstance(node.op, ast.USub) else ("not ", "")
            yield node.lineno, node.col_offset, old, new
        if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            changed: Any = not node.value if isinstance(node.value, bool) else node.value + 1
            text = self.lines[node.lineno - 1][node.col_offset : node.end_col_offset].decode()
            yield node.lineno, node.col_offset, text, repr(changed)

    def _column(self, operator: str, left: ast.expr, right: ast.expr) -> int | None:
        """Where an operator stands; None unless it is on one line with both sides."""
        if left.end_lineno != right.lineno or left.end_col_offset is None:
            return None
        gap = self.lines[right.lineno - 1][left.end_col_offset : right.col_offset].decode()
        return left.end_col_offset + gap.find(operator) if gap.strip("() ") == operator else None


def operands(node: ast.AST) -> Iterator[tuple[ast.AST, ast.expr, ast.expr]]:
    """The operators of a node, each with what stands on its sides."""
    if isinstance(node, ast.BinOp):
        yield node.op, node.left, node.right
    if isinstance(node, ast.BoolOp):
        yield from ((node.op, a, b) for a, b in zip(node.values, node.values[1:], strict=False))
    if isinstance(node, ast.Compare):
        yield from zip(node.ops, [node.left, *node.comparators], node.comparators, strict=False)


def drawn(count: int, seed: int) -> list[Mutant]:
    """So many mutants of all rooms."""
    every = [one for file in modules() for one in Finder(file).mutants()]
    return random.Random(seed).sample(every, count)


class Covering:
    """A plugin of pytest: which functions each test calls, and how long it takes."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.calls: dict[str, set[str]] = defaultdict(set)
        self.seconds: dict[str, float] = {}
        self.current: set[str] = set()
        self.names: dict[str, str | None] = {}
        self.wanted = tuple(str(SOURCES / room) for room in ROOMS)

    def trace(self, frame: types.FrameType, event: str, argument: object) -> None:
        """Called for each call of a Python function."""
        code = frame.f_code
        file = code.co_filename
        if file.startswith(self.wanted):
            self.current.add(f"{file[len(str(SOURCES)) + 1 :]}:{code.co_firstlineno}")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None]:
        """Around a test, its fixtures included."""
        self.current, start = self.calls[item.nodeid], time.perf_counter()
        threading.settrace(self.trace)
        sys.settrace(self.trace)
        yield
        sys.settrace(None)
        self.seconds[item.nodeid] = time.perf_counter() - start

    def pytest_sessionfinish(self) -> None:
        """Write what this process has seen."""
        tests = {name: [round(self.seconds[name], 3), sorted(self.calls[name])] for name in self.seconds}
        self.out.write_text(json.dumps(tests))


def cover(out: Path, arguments: Sequence[str]) -> int:
    """Run tests in this process, and write which functions they call."""
    os.chdir(ROOT)
    sys.path[0] = str(ROOT)  # tests has a folder `packaging`, which a library must not find
    return int(pytest.main([*PLAIN, *(arguments or ["tests"])], plugins=[Covering(out)]))


class Changed(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports one module from a changed source."""

    def __init__(self, mutant: Mutant) -> None:
        self.file = SOURCES / mutant.path
        self.text = mutant.source()
        parts = Path(mutant.path).with_suffix("").parts
        self.package = parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.package else parts)

    def find_spec(self, name: str, path: object, target: object = None) -> Any:
        """The module that is changed, and no other."""
        if name != self.name:
            return None
        spec = importlib.machinery.ModuleSpec(name, self, origin=str(self.file), is_package=self.package)
        spec.has_location = True
        if self.package:
            spec.submodule_search_locations = [str(self.file.parent)]
        return spec

    def get_source(self, fullname: str) -> str:
        """The changed one."""
        return self.text

    def is_package(self, fullname: str) -> bool:
        """Whether it is a folder's."""
        return self.package

    def get_code(self, fullname: str) -> types.CodeType:
        """Compiled under the name of its file."""
        return compile(self.get_source(fullname), str(self.file), "exec")


def killed(mutant: Mutant, tests: Sequence[str], limit: float) -> bool:
    """Whether one of the tests fails, in a process of its own; one that does not end is killed, too."""
    child = os.fork()
    if child == 0:
        signal.alarm(int(limit))
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        sys.meta_path.insert(0, Changed(mutant))
        os._exit(int(pytest.main([*PLAIN, *FORKED, *tests])))
    return os.waitpid(child, 0)[1] != 0


class Tests:
    """What `cover` wrote: seconds and functions of each test."""

    def __init__(self, covered: Path) -> None:
        self.seconds: dict[str, float] = {}
        self.calling = defaultdict[str, set[str]](set)  # names of tests by function, and by module
        for name, (seconds, functions) in json.loads(covered.read_text()).items():
            self.seconds[name] = seconds
            for function in functions:
                self.calling[function].add(name)
                self.calling[function.partition(":")[0]].add(name)

    def of(self, mutant: Mutant, seconds: float) -> list[str]:
        """The tests of a mutant, the quickest first, up to so many seconds; one at least, if there is any."""
        chosen, used = list[str](), 0.0
        for name in sorted(self.calling[mutant.function], key=lambda name: (self.seconds[name], name)):
            used += self.seconds[name]
            if chosen and used > seconds:
                break
            chosen.append(name)
        return chosen


def run(covered: Path, out: Path, count: int, seed: int, seconds: float, part: tuple[int, int]) -> int:
    """Try mutants one after another; how many survived."""
    os.chdir(ROOT)
    sys.path[0] = str(ROOT)  # tests has a folder `packaging`, which a library must not find
    import hypothesis  # noqa: F401  what all tests import, once for all mutants
    import jax  # noqa: F401
    import psycopg  # noqa: F401
    import xarray  # noqa: F401

    covering = Tests(covered)
    results: dict[str, str] = json.loads(out.read_text()) if out.exists() else {}
    for mutant in drawn(count, seed)[part[0] :: part[1]]:
        if mutant.text in results:
            continue
        chosen = covering.of(mutant, seconds)
        start = time.perf_counter()
        outcome = "not called"
        if chosen and not results and killed(mutant._replace(new=mutant.old), chosen, 60 + 4 * seconds):
            sys.exit(f"tests fail without any change, such as these: {chosen[:3]}")
        if chosen:
            outcome = "killed" if killed(mutant, chosen, 60 + 4 * seconds) else "survived"
        results[mutant.text] = outcome
        print(
            f"{mutant.text}: {outcome}, {len(chosen)} tests, {time.perf_counter() - start:.0f} s", flush=True
        )
        out.write_text(json.dumps(results, indent=1))
    left = sum(one != "killed" for one in results.values())
    print(f"{left} of {len(results)} survived")
    return left


def main() -> None:
    """From the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    covering = commands.add_parser("cover")
    covering.add_argument("out", type=Path)
    running = commands.add_parser("run")
    running.add_argument("covered", type=Path)
    running.add_argument("out", type=Path)
    running.add_argument("--count", type=int, default=300)
    running.add_argument("--seed", type=int, default=1)
    running.add_argument("--seconds", type=float, default=25)
    running.add_argument("--part", type=int, nargs=2, default=(0, 1), metavar=("INDEX", "OF"))
    arguments, rest = parser.parse_known_args()
    if arguments.command == "cover":
        sys.exit(cover(arguments.out.absolute(), rest))
    run(
        arguments.covered.absolute(),
        arguments.out.absolute(),
        arguments.count,
        arguments.seed,
        arguments.seconds,
        tuple(arguments.part),
    )


if __name__ == "__main__":
    main()
