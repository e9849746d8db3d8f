"""A thousand requests of each operation, made of the description: no answer but those that are described."""

from pathlib import Path

import pytest

from tests.serve.running import running
from tests.serve.schemed import ask, operations
from unfog.serve.openapi import document
from unfog.serve.settings import Settings

ALL = [one["operationId"] for methods in document()["paths"].values() for one in methods.values()]
IDS = [name for name in ALL if name != "description"]  # where schemathesis reads it from, it does not ask


@pytest.mark.soak
@pytest.mark.parametrize("name", IDS)
def test_no_undocumented_answer_in_a_thousand(tmp_path: Path, name: str) -> None:
    """On a store of its own: one that had all the others before would be replayed a thousand times."""
    with running(tmp_path / "walks.unfog", Settings(backups=tmp_path / "copies")) as service:
        service.make()
        good = ask(service, operations(service)[name], 1000, {})
        assert service.http.get("/readyz").status_code == 200
        assert service.http.post("/v1/problems/walks/replay", json={}).json()["same"]
    assert good or name == "import_events"  # no log is made by chance
