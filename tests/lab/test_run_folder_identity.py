"""Whatever a run plays is hashed into its identity, or has a reason why not."""

from pathlib import Path

import pytest

from tests.imported import imported
from unfog.lab import run_folder
from unfog.lab.spec import KINDS
from unfog.simulation import engines

# Imported by a run, and yet unable to change a number of it.
NOT_HASHED = {
    "unfog": "the table of public names",
    "unfog.version": "a run's identity has the version as it is",
    "unfog._memory": "refuses what does not fit in memory; batches do not hang on it",
    "unfog._io": "opens files that a user names; the identity has the hash of their bytes",
}
# What a run plays: plans, engines, the worlds that experiments name, and the rule by which it may end early.
PLAYED = f"""
from importlib import import_module

import unfog.lab.stopping
import unfog.simulation.plan
from unfog.simulation import engines

for name in engines.NAMES:
    engines.engine(name)
for world in {sorted(kind.__module__ for kind in KINDS.values())}:
    import_module(world)
"""


@pytest.fixture(name="played", scope="module")
def _played() -> dict[str, Path]:
    return imported(PLAYED)


def test_every_module_that_a_run_imports_is_hashed(played: dict[str, Path]) -> None:
    hashed = {path.resolve() for path in run_folder.files()}
    assert len(played) > 100
    assert {name for name, path in played.items() if path.resolve() not in hashed} == set(NOT_HASHED)


def test_every_source_beside_the_engines_is_hashed() -> None:
    """Also those in other languages, which nothing imports."""
    beside = [path for path in Path(engines.__file__).parent.rglob("*") if path.is_file()]
    sources = {path.resolve() for path in beside if "__pycache__" not in path.parts}
    assert {path.suffix for path in sources} == {".py", ".cu"}
    assert sources - {path.resolve() for path in run_folder.files()} == set()


def test_what_is_hashed_is_there_and_counts_once() -> None:
    files = run_folder.files()
    assert [path for path in files if not path.is_file()] == []
    assert len(set(files)) == len(files)
