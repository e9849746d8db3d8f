"""A bad input: a command line and the files that it finds, and the values that these are made bad with."""

import contextlib
import json
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from unfog.cli import main

LONG = "a" * 5000
NAN, INF = float("nan"), float("inf")
NUMBERS: list[Any] = [0, 1, -1, 2, 3, 0.5, -0.5, 1e-5, 1e9, 1e49, 1e-49, 1e51, 1e-51, 1e200, 1e300, 1e-300]
NUMBERS += [5e-324, 1e-320, 1.7e308, NAN, INF, -INF, 10**12, 10**30, -(10**30), -0.0, True, False]
WORDS = ["", " ", "x", "5", "nan", "linear", "quadratic", "own", "per_arm", "sphere", "turn", "alg1", "é"]
WORDS += ["\x7f", "a\nb", "os:path", "os:getcwd", "nowhere:name", "x:y:z", "../../etc", "/dev/zero", LONG]
LISTS: list[Any] = [
    [],
    [[]],
    {},
    [1],
    [1.0, 2.0],
    [1, [2]],
    [[1.0, 0.5], [0.5, 1.0]],
    [["a"]],
    [True],
    [None],
]
LISTS += [[[1.0, 2.0], [2.0, 1.0]], [1e-320] * 5, [1e200, 1e-200], [1e49, 1e-49, 1.0, 1.0, 1.0], [1] * 300]
LISTS += [[[1.0, 1 - 1e-16], [1 - 1e-16, 1.0]], [[[[1.0]]]], [NAN] * 5, [0.0] * 5, {"a": {"b": [1]}}]
SIZES = {"rounds", "trials", "dim", "actions", "units", "points", "prior_contexts", "clusters", "factors"}
PATIENCE = 300  # seconds after which a command hangs, also on a machine that is busy


class Case(NamedTuple):
    """A command line, and the files and pipes that it finds."""

    words: list[str]
    files: dict[str, bytes]
    pipes: tuple[str, ...] = ()

    def lay(self, folder: Path) -> None:
        """Make the files, in a folder."""
        for name, content in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        for name in self.pipes:
            os.mkfifo(folder / name)

    def check(self, capsys: pytest.CaptureFixture[str]) -> int:
        """Run it: it works, or is refused in one line, without a traceback or a warning. The exit code."""
        with _patience(), pytest.raises(SystemExit) as ended:
            main(self.words)
        code, (_, err) = int(ended.value.code or 0), capsys.readouterr()
        assert code in (0, 2), (self, err)
        if code == 2:
            assert err.startswith("unfog: "), (self, err)
            assert err.count("\n") == 1, (self, err)
            assert err.strip().isprintable(), (self, err)
            assert len(err) < 5000, (self, err)
        return code


@contextlib.contextmanager
def _patience() -> Iterator[None]:
    """What waits for ever is ended, and fails."""
    before = signal.signal(signal.SIGALRM, _hangs)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _hangs(*_: object) -> None:
    raise AssertionError("it hangs")


def junk(chance: random.Random, field: str) -> Any:
    """A value that most fields do not take; what is large and right is not asked for."""
    found = chance.choice(chance.choice([NUMBERS, WORDS, LISTS, NUMBERS]))
    if field in SIZES and isinstance(found, int | float) and 50 < found <= 1e9:
        return 7
    return found


def misspelt(chance: random.Random, name: str) -> str:
    """A name with a slip of the pen."""
    at = chance.randrange(len(name)) if name else 0
    slips = [name[:at] + name[at + 1 :], name[:at] + "x" + name[at:], name.upper(), name + " ", LONG]
    return chance.choice(slips)


def written(value: Any) -> str:
    """A value as TOML writes it, also one that TOML has no words for."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(k))} = {written(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def toml(data: dict[str, Any]) -> bytes:
    """Tables as a file."""
    plain = {name: value for name, value in data.items() if not isinstance(value, dict)}
    lines = [f"{json.dumps(name)} = {written(value)}" for name, value in plain.items()]
    for table, fields in data.items():
        if table not in plain:
            lines += [f"[{json.dumps(table)}]"]
            lines += [f"{json.dumps(name)} = {written(value)}" for name, value in fields.items()]
    return ("\n".join(lines) + "\n").encode()
