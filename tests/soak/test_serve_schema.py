"""A thousand requests of each operation, made of the description: no answer but those that are described."""

from pathlib import Path

import pytest

from tests.serve.running import running
from tests.serve.schemed import ask, operations
from unfog.serve.settings import Settings


@pytest.mark.soak
def test_no_undocumented_answer_in_a_thousand_each(tmp_path: Path) -> None:
    with running(tmp_path / "walks.unfog", Settings(backups=tmp_path / "copies")) as service:
        service.make()
        good = {name: ask(service, one, 1000, {}) for name, one in operations(service).items()}
        assert service.http.get("/readyz").status_code == 200
        replayed = service.http.post("/v1/problems/walks/replay", json={}).json()
    assert replayed["same"]
    assert {name for name, number in good.items() if not number} <= {"take_in"}
