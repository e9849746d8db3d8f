"""Every script of the gallery runs without a warning, draws one picture with a title, and leaves nothing."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.each import each

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "docs/gallery").glob("plot_*.py"))
NAMES = [script.name for script in SCRIPTS]
MOST_LINES = 60
WIDTH = 7.0  # inches of every picture, so that the letters of all are alike on the site
LEAST_BYTES = 8_000  # of a picture with something in it


def heading(script: Path) -> list[str]:
    """The lines of a script's docstring."""
    said = ast.get_docstring(ast.parse(script.read_text("utf-8")))
    assert said is not None, script.name
    return said.splitlines()


def test_there_are_enough_and_each_has_a_title_of_its_own() -> None:
    titles = [heading(script)[0] for script in SCRIPTS]
    assert len(titles) >= 16
    assert len({*titles}) == len(titles)


@each("script", SCRIPTS)
def test_a_script_is_short_and_begins_with_what_is_seen(script: Path) -> None:
    title, line, empty, *words = heading(script)
    assert line == "=" * len(title)
    assert empty == ""
    assert 25 <= len(" ".join(words).split()) <= 110
    text = script.read_text("utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    *before, last = text.split("\n# %%\n")
    assert before
    assert not re.search(r"plt\.(figure|subplots)", "".join(before))  # the site takes figures after each cell
    assert re.search(r"plt\.(figure|subplots)", last)
    assert text.endswith("plt.show()\n")


@each("script", SCRIPTS)
def test_numbers_are_drawn_from_fixed_seeds_and_intervals_are_shown(script: Path) -> None:
    text = script.read_text("utf-8")
    assert not re.search(r"default_rng\(\)|np\.random\.(?!default_rng)", text)
    assert re.search(r"95 %|±|probability", text)


@each("script", SCRIPTS)
def test_nothing_private_is_imported(script: Path) -> None:
    for node in ast.walk(ast.parse(script.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert not any(part.startswith("_") for part in (node.module or "").split("."))
            assert not any(name.name.startswith("_") for name in node.names)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """All scripts in one process, for imports take longer than most of them; warnings are errors."""
    pictures, empty = tmp_path_factory.mktemp("pictures"), tmp_path_factory.mktemp("empty")
    runner = Path(__file__).with_name("gallery_runner.py")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(runner), str(pictures), *map(str, SCRIPTS)],
        cwd=empty,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert list(empty.iterdir()) == []
    found: dict[str, Any] = json.loads((pictures / "found.json").read_text("utf-8"))
    return pictures, found


@pytest.mark.slow
@each("script", SCRIPTS)
def test_a_script_draws_one_picture(script: Path, played: tuple[Path, dict[str, Any]]) -> None:
    pictures, found = played
    assert "failed" not in found[script.name], found[script.name]["failed"]
    [title] = found[script.name]["titles"]
    assert len(title) > 10
    assert found[script.name]["widths"] == [WIDTH]
    assert (pictures / f"{script.stem}.png").stat().st_size > LEAST_BYTES
