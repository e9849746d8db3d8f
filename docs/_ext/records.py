"""The fields of a named tuple, from its source: what each is stands in a comment behind it."""

import ast
import inspect
import re
import textwrap

from docs._ext.tables import code

_BEHIND = re.compile(r"#\s*(.*)$", re.M)
_SHAPE = re.compile(r"^(\([^)]*\))\s*")


def fields(kind: type) -> list[tuple[str, str, str]]:
    """Name, type and meaning of each; nothing of a class that is no named tuple."""
    if not issubclass(kind, tuple) or "_fields" not in vars(kind):
        return []
    source = textwrap.dedent(inspect.getsource(kind))
    (found,) = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    lines = source.splitlines()
    told = [node for node in found.body if isinstance(node, ast.AnnAssign)]
    return [
        (
            code(ast.unparse(node.target)),
            code(ast.unparse(node.annotation)),
            _meaning("\n".join(lines[node.lineno - 1 : node.end_lineno])),
        )
        for node in told
    ]


def _meaning(text: str) -> str:
    """The comment, its shape as code."""
    behind = " ".join(_BEHIND.findall(text))
    return _SHAPE.sub(lambda found: f"`{found[1]}` ", behind).replace("*", "\\*")
