"""The Reference of Python: a page for each public module, with every name and its example.

The names at the top are so many that they have a page for each thing that they are for.
"""

import inspect
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from docs._ext import docstrings, records, signatures
from docs._ext.public import MODULES, Name, module, names
from docs._ext.tables import code, table
from docs._ext.values import VALUES

from unfog.worlds.composed import Composed

LAST = ("data", "exception")  # kinds of names that come after all others
OPENED = ("unfog.live.Store", "unfog.live.Problem")  # by a function or a method: nobody calls the class
PARTS = ("unfog.denoise", "unfog.learn", "unfog.choose")  # whose contract has the methods
TOPICS = {  # of names at the top: all others stay on the page of `unfog` itself
    "unfog: problems": ("GaussianProblem", "LogisticProblem", "RecordedProblem", "TemporalProblem"),
    "unfog: runs": ("run", "open_run", "summary", "table", "figure", "compare_baselines", "hypotheses"),
    "unfog: sensors and logs": ("calibrate", "deconvolve", "evaluate", "sensor_worth"),
}


class Page(NamedTuple):
    """A page of names."""

    title: str
    said: str
    names: list[Name]

    @property
    def file(self) -> str:
        """What it is called, without an ending."""
        return file_name(self.title)


def pages() -> dict[str, str]:
    """The pages by their names."""
    every = [page for of in MODULES for page in _pages(of)]
    return {"python": _contents(every), **{page.file: "\n".join(_page(page)) for page in every}}


def file_name(of: str) -> str:
    """Of the page of a module."""
    return "python-" + re.sub(r"\W+", "-", of)


def _pages(of: str) -> Iterator[Page]:
    topics = TOPICS if of == "unfog" else {}
    elsewhere = {name for chosen in topics.values() for name in chosen}
    whole = docstrings.markdown(inspect.getdoc(module(of)))
    said = whole if not topics and "\n\n" in whole else MODULES[of] + "."  # more than a line of its own
    yield Page(of, said, [name for name in names(of) if name.name not in elsewhere])
    for title, chosen in topics.items():
        yield Page(title, "", [Name(of, name) for name in chosen])


def _contents(every: list[Page]) -> str:
    rows = [(f"[{page.title}]({page.file}.md)", _listed(page)) for page in every]
    said = "Every public name, with how it is called and an example that runs."
    tree = "```{toctree}\n:hidden:\n\n" + "\n".join(page.file for page in every) + "\n```\n"
    return f"# Python\n\n{said}\n\n{table(('page', 'what is in it'), rows)}\n{tree}"


def _listed(page: Page) -> str:
    """What it is for, and its names."""
    said = f"{MODULES[page.title]}: " if page.title in MODULES else ""
    return said + ", ".join(code(name.name) for name in page.names)


def _page(page: Page) -> Iterator[str]:
    yield f"# {page.title}\n\n{page.said}\n"
    if page.title in TOPICS or page.title == "unfog":
        yield (
            "Other names at the top: " + ", ".join(f"[{one}]({file_name(one)}.md)" for one in TOPICS) + ".\n"
        )
    for name in sorted(page.names, key=_place):
        yield from _entry(name)


def _entry(name: Name) -> Iterator[str]:
    found, kind = name.found, _kind(name)
    yield f"## {name.name.replace('__', chr(92) + '_' + chr(92) + '_')}\n"
    bare = kind == "data" or name.full in OPENED
    yield f"`````{{py:{kind}}} {name.full}{'' if bare else _one_line(signatures.of(found))}\n"
    yield from _inside(name, kind)
    yield "`````\n"


def _place(name: Name) -> int:
    kind = _kind(name)
    return LAST.index(kind) + 1 if kind in LAST else 0


def _kind(name: Name) -> str:
    if name.full in VALUES:
        return "data"
    if inspect.isclass(name.found):
        return "exception" if issubclass(name.found, Exception) else "class"
    return "function"


def _inside(name: Name, kind: str) -> Iterator[str]:
    if name.also:
        yield f"The same as {{py:obj}}`{name.also}`.\n"
        return
    yield docstrings.markdown(name.said) + "\n"
    if kind == "class" and (rows := records.fields(name.found)):
        yield table(("field", "type", "what it is"), rows)
    if kind == "class" and issubclass(name.found, Composed):
        yield "What each field means, and what may stand there: [every field](fields.md#problem).\n"
    if kind == "class" and name.module not in PARTS:
        for member in _members(name.found):
            yield from _member(*member)


def _members(kind: type) -> Iterator[tuple[str, Any, bool]]:
    """Public ones that the class itself defines and that have something to say."""
    for name, value in vars(kind).items():
        is_property = isinstance(value, property)
        bare = getattr(value, "__func__", value)
        if not name.startswith("_") and (is_property or inspect.isfunction(bare)) and inspect.getdoc(value):
            yield name, value, is_property


def _member(name: str, value: Any, is_property: bool) -> Iterator[str]:
    bare = getattr(value, "__func__", value)
    kind = "property" if is_property else "method"
    yield f"````{{py:{kind}}} {name}{'' if is_property else _one_line(signatures.of(bare))}\n"
    yield docstrings.markdown(inspect.getdoc(value)) + "\n````\n"


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)
