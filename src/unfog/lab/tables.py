"""Text of at most 80 columns: tables, wrapped sentences, numbers.

Columns of a table that do not fit beside each other are set below; long names have lines of their own.
"""

import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unfog.maths.arrays import Array

WIDTH = 80
NAME = 28  # letters of a name that is printed in its row, if there is space for the columns
SHORT = 16  # and if there is not
GAP = 2
NOTHING = "–"
GLUE = "\N{NO-BREAK SPACE}"  # no line breaks here; it is printed as a space
MOST = 6  # digits after the point


def digits(errors: "Array") -> int:
    """How many digits after the point to print: two of the usual error."""
    import numpy as np

    usable = errors[np.isfinite(errors) & (errors > 0)]
    if not len(usable):
        return 3
    return int(np.clip(1 - np.floor(np.log10(np.median(usable))), 0, MOST))


def plus_minus(mean: float, half: float, places: int, sign: str = "") -> str:
    """A number with the half-width of its interval; a dash for what is not a number."""
    if math.isnan(mean):
        return NOTHING
    text = f"{mean:{sign},.{places}f}"
    return text if math.isnan(half) else f"{text} ± {half:,.{places}f}"


def percent(share: float, places: int = 0) -> str:
    """A share with a space before its sign."""
    return f"{share:.{places}%}".replace("%", " %")


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural where needed: 1 trial, 2 trials."""
    return f"{number} {noun}{'s' * (number != 1)}"


def wrap(
    text: str, indent: str = "", *, first: str = "", hyphens: bool = False, long_words: bool = True
) -> list[str]:
    """Lines of 80 columns, all but the first with an indent.

    With `hyphens` words are broken at theirs; without `long_words` none is cut, however long.
    """
    lines = textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=indent,
        break_on_hyphens=hyphens,
        break_long_words=long_words,
    )
    return [line.replace(GLUE, " ") for line in lines]


def fill(text: str, indent: str = "") -> str:
    """Wrapped as one text, where words may be broken at hyphens."""
    return "\n".join(wrap(text, indent, hyphens=True))


def columns(head: str, names: Sequence[str], titles: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """A row for each name; as many columns beside each other as fit, the rest in tables below."""
    widths = [max(len(title), *(len(row[i]) for row in cells)) for i, title in enumerate(titles)]
    longest = max(len(head), *map(len, names))
    spare = WIDTH - sum(width + GAP for width in widths)
    name_width = longest if longest <= max(spare, NAME) else max(len(head), min(max(spare, SHORT), NAME))
    parts = []
    for group in _group_columns(widths, WIDTH - name_width):
        group_cells = [[row[i] for i in group] for row in cells]
        parts.append(
            "\n".join(_table_lines(head, names, [titles[i] for i in group], group_cells, name_width))
        )
    return "\n\n".join(parts)


def _group_columns(widths: Sequence[int], width_left: int) -> list[list[int]]:
    """Columns in groups that fit; one that is too wide is a group of its own."""
    groups: list[list[int]] = [[]]
    for index, width in enumerate(widths):
        used = sum(widths[i] + GAP for i in groups[-1])
        if groups[-1] and used + width + GAP > width_left:
            groups.append([])
        groups[-1].append(index)
    return groups


def _table_lines(
    head: str, names: Sequence[str], titles: Sequence[str], cells: Sequence[Sequence[str]], name_width: int
) -> list[str]:
    """One table; a name that is longer than the room stands above its row."""
    short = [name if len(name) <= name_width else "" for name in names]
    rows = [[name, *row] for name, row in zip(short, cells, strict=True)]
    first, *lines = align([[head.ljust(name_width), *titles], *rows])
    table_lines = [first]
    for name, line in zip(names, lines, strict=True):
        table_lines += wrap(name, hyphens=True) if len(name) > name_width else []
        table_lines.append(line)
    return table_lines


def notes(sentences: Sequence[str]) -> str:
    """Sentences as a bulleted list."""
    return "\n".join(line for note in sentences for line in wrap(note, "  ", first="- "))


def align(rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Columns padded to the same width, the first ones to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        (" " * GAP).join(
            cell.ljust(width) if index < left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def prose(*sentences: str) -> list[str]:
    """Sentences as one paragraph, in lines of 80 columns."""
    return wrap(" ".join(sentences), long_words=False)


def files(label: str, paths: Iterable[object]) -> str:
    """A list of paths with a label: on one line if it fits, else each path unbroken on its own line."""
    texts = [str(path) for path in paths] or ["none"]
    line = f"{label}: {', '.join(texts)}"
    return line if len(line) <= WIDTH else "\n".join([f"{label}:", *texts])
