"""Output blocks of pages, as the code above them prints them now.

    python benchmarks/printed.py docs/guide/evaluation.md docs/guide/sklearn.md …

A ```text block right below a ```python block is what that block prints, or some lines of it in a row; right
below a ```sh block with a command `unfog …`, what that command prints. As many lines as stand there are
written anew, from the first one on that begins with the same word; an empty block becomes all that is
printed. `tests/docs/test_snippets.py` holds pages to it. Numbers in sentences are to be looked at by people.
"""

import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

PYTHON = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.S | re.M)
SHELL = re.compile(r"^```sh\n(unfog .*?)^```\n\n```text\n(.*?)^```\n", re.S | re.M)
UNFOG = "import sys; from unfog.cli import main; main(sys.argv[1:])"
MARK = "-- the end of a block --"


def printed(text: str) -> str:
    """The page with its output blocks renewed."""
    with tempfile.TemporaryDirectory() as folder:
        code = f"\nprint({MARK!r})\n".join(match[1] for match in PYTHON.finditer(text))
        found = iter(_out([sys.executable, "-W", "error", "-c", code], folder).split(f"{MARK}\n"))
        text = PYTHON.sub(lambda match: _with(match, found), text)
        return SHELL.sub(lambda match: _told(match, folder), text)


def _out(command: list[str], folder: str) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def _with(match: re.Match[str], found: Iterator[str]) -> str:
    now = next(found)
    if match[2] is None:
        return match[0]
    return f"```python\n{match[1]}```\n\n```text\n{_cut(match[2], now)}```\n"


def _told(match: re.Match[str], folder: str) -> str:
    words = shlex.split(match[1].replace("\\\n", ""))
    now = _out([sys.executable, "-c", UNFOG, *words[1:]], folder)
    return f"```sh\n{match[1]}```\n\n```text\n{_cut(match[2], now)}```\n"


def _cut(before: str, now: str) -> str:
    """The lines of what is printed now that stand for those of before."""
    lines = now.splitlines(keepends=True)
    if not before:
        return now
    word = before.split()[0]
    start = next(i for i, line in enumerate(lines) if line.split()[:1] == [word])
    return "".join(lines[start : start + before.count("\n")])


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(printed(path.read_text("utf-8")), "utf-8")
