"""Which names of unfog a page tells its readers of: in its Python, and in words that are set as code."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)
CODE = re.compile(r"`([^`\n]+)`")
DOTTED = re.compile(r"(?<![\w/.])unfog(?:\.[A-Za-z_]\w*)+")
FILE = re.compile(
    r"(?<![\w/.*{}<>:$~-])(?:(?:[\w-]+/)+[\w-]+\.(?:cu|md|toml|yml)|(?:[\w-]+/)*[\w-]+\.py)(?![\w/(])"
)
IMPORT = re.compile(r"from (unfog[\w.]*) import (\w+)")


def names(path: Path) -> set[str]:
    """With their modules, as a reader would write them."""
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        return {*in_python(text)}
    if path.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        lines = [line for cell in cells for line in "".join(cell["source"]).splitlines()]
        return {*in_python("\n".join(line for line in lines if not line.startswith("%")))}
    blocks = [plain(block) for language, block in FENCE.findall(text) if language in ("python", "pycon")]
    return {*in_python("\n".join(blocks)), *in_words(FENCE.sub("", text))}


def plain(block: str) -> str:
    """Without the prompts of a session, and what it answers."""
    if ">>> " not in block:
        return block
    return "\n".join(line[4:] for line in block.splitlines() if line.startswith((">>> ", "... ")))


def in_python(source: str) -> Iterator[str]:
    """What is imported from unfog, and what is reached through that with dots."""
    tree = ast.parse(source)
    known = {"unfog": "unfog"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "unfog":
            known |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
        elif isinstance(node, ast.Import):
            found = [one for one in node.names if one.name.startswith("unfog")]
            known |= {one.asname: one.name for one in found if one.asname}
            yield from (one.name for one in found if one.name != "unfog")
    yield from (name for name in known.values() if name != "unfog")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            root, *rest = ast.unparse(node).split(".")
            if root in known and all(part.isidentifier() for part in rest):
                yield ".".join([known[root], *rest])


def in_words(text: str) -> Iterator[str]:
    """What stands between backticks."""
    for said in CODE.findall(text):
        yield from (f"{module}.{name}" for module, name in IMPORT.findall(said))
        yield from DOTTED.findall(IMPORT.sub("", said))


def files(text: str) -> set[str]:
    """The files that a text names: modules, with or without their folder, and others with it."""
    return {*FILE.findall(text)}
