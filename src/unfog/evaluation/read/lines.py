"""Files of JSON, an object a line: a live problem that was exported, or the dsjson of Vowpal Wabbit.

The first object says which it is: events have a kind; dsjson has a context c, or is the reward of one.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from unfog.evaluation.log import Log
from unfog.evaluation.read import dsjson, live
from unfog.evaluation.read.asked import Asked
from unfog.validation import InputError

BOTH = "an export of `unfog live`, whose events have a kind; or dsjson, with _label_cost, a, c and p"


def read(path: Path, asked: Asked) -> Log:
    """The log of a file."""
    with open(path, "rb") as file:
        objects = _objects(file)
        number, first = next(objects, (0, None))
        if first is None:
            raise InputError("log", f"no rows in {path.name}", BOTH)
        both = _again(number, first, objects)
        if "kind" in first and "seq" in first:
            asked.only(path.name, *live.TAKES)
            numbered = ((f"line {i}", one) for i, one in both)
            return live.of_lines(numbered, asked.problem, asked.arms, path.name)
        if not dsjson.MARKS & first.keys():
            raise InputError(f"line {number}", f"an object with {', '.join(list(first)[:8])}", BOTH)
        asked.only(path.name, *dsjson.TAKES)
        return dsjson.read(both, asked.arms, asked.coordinates, asked.probability, path.name)


def _again(number: int, first: Any, rest: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    yield number, first
    yield from rest


def _objects(lines: Iterable[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Each with the number of its line; empty lines are passed over."""
    for number, line in enumerate(lines, 1):
        shown = line[:60].decode("utf-8", "replace")
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            if not text.strip():
                continue
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"line {number}", shown, f"one JSON object, in UTF-8 ({error})") from None
        if not isinstance(found, dict):
            raise InputError(f"line {number}", shown, "one JSON object")
        yield number, found
