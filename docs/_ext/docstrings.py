"""A docstring as Markdown: formulas are indented, names in backticks, so that it nearly is that already."""

import inspect
import re
from collections.abc import Iterator

_PARAMETER = re.compile(r"^(\w[\w, *]*) : ")
_RULE = re.compile(r"^-{3,}$")


def markdown(docstring: str | None) -> str:
    """The same words: examples in fences, the headings of sections in bold, parameters as a list."""
    lines = inspect.cleandoc(docstring or "").replace("$", r"\$").splitlines()
    return "\n".join(_parameters(_headings(_fenced(lines))))


def _fenced(lines: list[str]) -> Iterator[str]:
    """An example begins with >>> and ends at an empty line."""
    inside, indent = False, 0
    for line in lines:
        if not inside and line.lstrip().startswith(">>>"):
            inside, indent = True, len(line) - len(line.lstrip())
            yield from ("", "```pycon")
        elif inside and not line.strip():
            inside = False
            yield "```"
        yield line[indent:] if inside else line
    if inside:
        yield "```"


def _headings(lines: Iterator[str]) -> Iterator[str]:
    before: str | None = None
    for line in lines:
        if before and _RULE.match(line):
            before = f"**{before}**\n"
            continue
        if before is not None:
            yield before
        before = line
    if before is not None:
        yield before


def _parameters(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield _PARAMETER.sub(lambda found: f"- `{found[1]}`: ", line)
