"""Whatever a fold runs is hashed into the fingerprint of its snapshots, or has a reason why not."""

import pytest

from tests.imported import imported
from unfog.live import snapshot

# Imported by a fold, and yet unable to change what is remembered.
NOT_HASHED = {
    "unfog": "the table of public names",
    "unfog.version": "the fingerprint has the version as it is",
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
