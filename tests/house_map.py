"""The map of the house in CONTRIBUTING.md, a folder a line: `python tests/house_map.py` writes it.

A line has the first sentence of a folder's `__init__.py` and the names of its modules.
"""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "unfog"
PAGE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- The map: python tests/house_map.py writes it. -->\n", "<!-- The end of the map. -->\n"


def rows() -> list[str]:
    """The lines of the table: the top first, then every folder below it."""
    folders = sorted({path.parent for path in SOURCE.rglob("*.py")})
    found = ["| folder | what is in it | modules |", "|---|---|---|"]
    for folder in folders:
        sentence, _, _ = _docstring(folder / "__init__.py").partition("\n\n")
        names = [f"`{path.stem}`" for path in sorted(folder.glob("*.py")) if path.stem != "__init__"]
        where = folder.relative_to(SOURCE.parent).as_posix()
        found.append(f"| `{where}/` | {' '.join(sentence.split())} | {', '.join(names)} |")
    return found


def written() -> str:
    """The page as it should be."""
    before, begin, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE.name} has no place for the map")
    return before + BEGIN + "\n".join(["", *rows(), "", ""]) + END + after


def _docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""


if __name__ == "__main__":
    PAGE.write_text(written(), "utf-8")
