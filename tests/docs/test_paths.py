"""Files that docstrings, comments and pages name are there: words do not outlive what they point at."""

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

import pytest

from tests.docs import mentioned
from tests.docs.conftest import ROOT

ENDINGS = (".cu", ".html", ".js", ".md", ".py", ".toml", ".yml")
FILES = [
    path.relative_to(ROOT)
    for folder in ("src", "tests", "docs", "benchmarks", "deploy", "requirements", ".ci")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.is_file() and not {"__pycache__", "_build", "generated", "vendor", "out"} & {*path.parts}
] + [path.relative_to(ROOT) for path in sorted(ROOT.iterdir()) if path.is_file()]
WRITTEN = [path for path in FILES if path.suffix in ENDINGS and path != Path(__file__).relative_to(ROOT)]
# Every way to name a file: by all of its path, or by the end of it.
NAMED = Counter("/".join(path.parts[start:]) for path in FILES for start in range(len(path.parts)))
ROOMS = ("src/unfog", "src/unfog/agents", "docs", "tests")  # where a path that fits several files begins
ELSEWHERE = {"FOLDER/spec.toml", "NAME/spec.toml", "mymod.py"}  # the reader's own
ELSEWHERE |= {"docs/science/rivals.md"}  # of an earlier version, which the changelog names


def words(path: Path) -> str:
    """What a file says to its readers: of Python, docstrings and comments."""
    text = (ROOT / path).read_text("utf-8")
    if path.suffix != ".py" or not mentioned.files(text):
        return text if path.suffix != ".py" else ""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    said = [
        ast.get_docstring(node) or "" for node in ast.walk(ast.parse(text)) if isinstance(node, documented)
    ]
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return "\n".join([*said, *(token.string for token in tokens if token.type == tokenize.COMMENT)])


def found(path: str, beside: Path) -> bool:
    """Whether it is one file, by the end of its path or from where paths begin."""
    starts = [beside.parent, *map(Path, ROOMS), Path()]
    if "/" not in path:
        return path in NAMED
    return NAMED[path] == 1 or any((ROOT / start / path).is_file() for start in starts)


@pytest.mark.slow
def test_files_that_are_named_are_there() -> None:
    named = [(str(path), name) for path in WRITTEN for name in mentioned.files(words(path))]
    assert len(named) > 300
    assert [
        (path, name) for path, name in named if name not in ELSEWHERE and not found(name, Path(path))
    ] == []
