"""The map of the house in CONTRIBUTING.md, a folder a line: `python tests/house_map.py` writes it.

A line has the first sentence of a folder's `__init__.py` and the names of its modules.
"""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "unfog"
PAGE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- The map: python tests/house_map.py writes it. -->\n", "<!-- The end of the map. -->\n"


TOP = (  # the package's own first line is for its users
    "What every folder may use: `validation` refuses bad input and suggests the name that was meant, `_io`"
    " writes files whole or not at all, `_table` reads tables, `_frames` data frames and rows, `_codec` turns"
    " states into bytes and back, `_memory` says how much memory there is, `_extras` which extra a missing"
    " package belongs to, and `plotting` has the style of all figures."
)


def rows() -> list[str]:
    """The lines of the table: the top first, then every folder below it; `__init__` where it holds code."""
    folders = sorted({path.parent for path in SOURCE.rglob("*.py")})
    found = ["| folder | what is in it | modules |", "|---|---|---|"]
    for folder in folders:
        package = ast.parse((folder / "__init__.py").read_text("utf-8"))
        code = any(isinstance(one, ast.FunctionDef | ast.ClassDef) for one in package.body)
        sentence, _, _ = (TOP if folder == SOURCE else ast.get_docstring(package) or "").partition("\n\n")
        files = sorted(folder.glob("*.py"))
        names = [f"`{path.stem}`" for path in files if code or path.stem != "__init__"]
        where = folder.relative_to(SOURCE.parent).as_posix()
        found.append(f"| `{where}/` | {' '.join(sentence.split())} | {', '.join(names)} |")
    return found


def render() -> str:
    """The page as it should be."""
    before, begin, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE.name} has no place for the map")
    return before + BEGIN + "\n".join(["", *rows(), "", ""]) + END + after


if __name__ == "__main__":
    PAGE.write_text(render(), "utf-8")
