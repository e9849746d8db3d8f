"""The Reference of Python: a page for each public module, with every name and its example."""

import inspect
import re
import sys
from collections.abc import Iterator
from typing import Any

from docs._ext import docstrings, signatures
from docs._ext.public import MODULES, VALUES, Name, module, names
from docs._ext.tables import table

from unfog.worlds.composed import Composed

WHOLE = ("unfog.live.Problem",)  # written in several files
PARTS = ("unfog.denoise", "unfog.learn", "unfog.choose", "unfog.features")


def pages() -> dict[str, str]:
    """The pages by their names."""
    return {"python": _contents(), **{file_name(of): "\n".join(_page(of)) for of in MODULES}}


def file_name(of: str) -> str:
    """Of the page of a module."""
    return "python-" + of.replace(".", "-")


def _contents() -> str:
    rows = [(f"[{of}]({file_name(of)}.md)", said) for of, said in MODULES.items()]
    listed = "\n".join(map(file_name, MODULES))
    said = "Every public name, with how it is called and an example that runs."
    tree = f"```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
    return f"# Python\n\n{said}\n\n{table(('module', 'what is in it'), rows)}\n{tree}"


def _page(of: str) -> Iterator[str]:
    said = docstrings.markdown(inspect.getdoc(module(of)))
    whole = of != "unfog" and "\n\n" in said  # more than a line of its own
    yield f"# {of}\n\n{said if whole else MODULES[of] + '.'}\n"
    for name in sorted(names(of), key=lambda name: _kind(name) == "exception"):
        yield from _entry(name)


def _entry(name: Name) -> Iterator[str]:
    found, kind = name.found, _kind(name)
    yield f"## {name.name.replace('__', chr(92) + '_' + chr(92) + '_')}\n"
    yield f"`````{{py:{kind}}} {name.full}{'' if kind == 'data' else _one_line(signatures.of(found))}\n"
    yield from _inside(name, kind)
    yield "`````\n"


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
    yield (docstrings.markdown(VALUES[name.full]) if kind == "data" else docstrings.own(name.found)) + "\n"
    if kind == "class" and issubclass(name.found, Composed):
        yield "What each field means, and what may stand there: [every field](fields.md#problem).\n"
    if name.module in PARTS and (how := sys.modules[name.found.__module__].__doc__) and kind != "data":
        yield f"**How it works.** {docstrings.markdown(how)}\n"
    if kind == "class" and name.module not in PARTS[:3]:
        for member in _members(name.found, name.full in WHOLE):
            yield from _member(*member)


def _members(kind: type, whole: bool) -> Iterator[tuple[str, Any, bool]]:
    """Public ones that the class itself defines, or the whole of it, and that have something to say."""
    found = dict[str, Any]()
    for one in reversed(kind.__mro__ if whole else [kind]):
        found |= vars(one) if one.__module__.startswith("unfog.") else {}
    for name, value in found.items():
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
