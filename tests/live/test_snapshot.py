"""Whatever a fold runs is hashed into the key of its snapshots, or has a reason why not."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.imported import imported
from tests.live.played import Player, terms
from unfog.live import snapshot
from unfog.maths.arrays import Array

# Imported by a fold, and yet unable to change what is remembered.
NOT_HASHED = {
    "unfog": "the table of public names",
    "unfog.version": "the key has the version as it is",
}


@pytest.mark.parametrize("entry", ["unfog.live.state", "unfog.live.snapshot"])
def test_every_module_that_a_fold_imports_is_hashed(entry: str) -> None:
    found = imported(f"import {entry}")
    hashed = {path.resolve() for path in snapshot.files()}
    assert len(found) > 50
    assert {name for name, path in found.items() if path.resolve() not in hashed} - {*NOT_HASHED} == set()


def test_what_is_hashed_is_there_and_counts_once() -> None:
    files = snapshot.files()
    assert [path for path in files if not path.is_file()] == []
    assert len(set(files)) == len(files)


def arrays(value: Any, name: str = "") -> Iterator[tuple[str, Array]]:
    """All arrays of nested values, with where they stand."""
    if isinstance(value, np.ndarray):
        yield name, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from arrays(item, f"{name}.{key}")
    elif isinstance(value, tuple | list):
        for place, item in enumerate(value):
            yield from arrays(item, f"{name}.{place}")


@pytest.mark.parametrize("agent", ["temporal", "adaptive-temporal", "late", "clbbf", "alg1-exact-smoothing"])
def test_every_array_of_a_snapshot_is_in_c_order(tmp_path: Path, agent: str) -> None:
    """So that one that was read adds up to the same bits as one that never left memory."""
    player, seen = Player(3, units=False, grows=True), 0
    with player.open(tmp_path / "walks.unfog") as store:
        problem = store.problem("p", **terms(agent))
        for calls in (1, 9, 50):
            player.play(problem, calls)
            found = list(arrays(snapshot.content(store.processor.cache.get("p"))))
            assert [name for name, one in found if not one.flags.c_contiguous] == []
            seen += len(found)
    assert seen > 50
