"""No body, key, unit or context in anything that the service writes, whatever goes wrong."""

import logging
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import unfog
from tests.serve.running import TERMS, running
from tests.serve.test_process import serving
from unfog.live import Problem, Store
from unfog.live.errors import ReplayMismatchError, StoreError
from unfog.serve import errors
from unfog.serve.errors import described
from unfog.serve.operations import EXAMPLES, OPERATIONS

MARK = "XYZZY"  # in all that is nobody's business
BODIES: dict[str, Any] = {
    "context": {"steps": 1.0, "sleep": 2.0, f"{MARK}-coordinate": 3.0},
    "unit": f"{MARK}-unit",
    "key": f"{MARK}-key",
    "arm": f"{MARK}-arm",
    "agent": f"{MARK}:agent",
    "table": f"{MARK},arm\n1,2\n",
    "name": f"{MARK}-name",
    "rewards": {f"{MARK}-id": 1.0},
}


def _marked(example: dict[str, Any]) -> dict[str, Any]:
    return {**example, **{name: BODIES[name] for name in example if name in BODIES}}


def everything(client: httpx.Client, key: str) -> set[int]:
    """Every operation: as its example has it, with markers in place of values, and malformed."""
    seen = set[int]()
    headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": f"{MARK}-header"}
    made = f"{MARK}-id"
    for one in OPERATIONS:
        at = one.path.replace("{name}", "walks").replace("{id}", made)
        example = EXAMPLES[one.id].body
        body = f"{MARK}\n" if not isinstance(example, dict) else _marked(example)
        for told_ in (body, f'{{"{MARK}": NaN}}', example if isinstance(example, dict) else ""):
            kind = {"Content-Type": "application/x-ndjson" if one.lines else "application/json"}
            more: dict[str, Any] = {"content": told_} if isinstance(told_, str) else {"json": told_}
            if one.method == "GET":
                more = {"params": {name: f"{MARK}-{name}" for name in one.query}}
            found = client.request(one.method, at, headers={**headers, **kind}, **more)
            seen.add(found.status_code)
    for raw in (f"/{MARK}", f"/v1/problems/{MARK}", f"/v1/problems?{MARK}=1"):
        seen.add(client.get(raw, headers={"Authorization": f"Bearer {MARK}"}).status_code)
    return seen


@pytest.mark.slow
def test_a_process_that_was_asked_everything_has_said_nothing(tmp_path: Path) -> None:
    with serving(tmp_path / "walks.unfog", "--queue", "8") as (process, url):
        with httpx.Client(base_url=url) as client:
            client.post("/v1/problems", json={"name": "walks", **TERMS})
            told_ = {"context": {"steps": 1.0, "sleep": 2.0}, "unit": f"{MARK}-unit", "key": f"{MARK}-key"}
            assert client.post("/v1/problems/walks/decide", json=told_).status_code == 200
            told_["context"] = {"steps": 9.0, "sleep": 2.0}
            assert client.post("/v1/problems/walks/decide", json=told_).status_code == 409
            seen = everything(client, f"unfog_{MARK}_{MARK}")
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
    assert seen >= {200, 400, 404, 422}
    assert MARK.lower() not in (out + err).lower()


@pytest.fixture
def written(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.DEBUG):
        yield caplog


def test_a_mistake_is_logged_without_its_words(
    tmp_path: Path, written: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        try:
            raise KeyError(MARK)
        except KeyError as error:
            raise RuntimeError(f"of {MARK}") from error

    with running(tmp_path / "a.unfog") as service:
        service.make()
        monkeypatch.setattr(Problem, "decide", fails)
        found = service.http.post("/v1/problems/walks/decide", json={"context": {"steps": MARK}})
        assert (found.status_code, MARK in found.text) == (500, False)
        monkeypatch.undo()
    said = [one for one in written.messages if one.startswith("a mistake in decide: ")]
    assert len(said) == 1
    assert "RuntimeError at " in said[0]
    assert "; from KeyError at test_silence.py:" in said[0]
    assert MARK not in written.text


def test_an_answer_that_is_cut_short_ends_the_connection_and_says_no_words(
    tmp_path: Path, written: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(*_: Any) -> Iterator[dict[str, Any]]:
        for number in range(600):
            yield {"seq": number}
        raise RuntimeError(MARK)

    with running(tmp_path / "a.unfog") as service:
        service.make()
        monkeypatch.setattr(Store, "events", half)
        with pytest.raises(httpx.RemoteProtocolError):
            service.http.get("/v1/problems/walks/events")
    assert "an answer was cut short: RuntimeError at " in written.text
    assert MARK not in written.text


def test_a_store_that_fails_is_told_of_in_its_own_words() -> None:
    error = StoreError("walks.unfog: row 7 was not kept")
    error.__cause__ = OSError(28, "No space left on device", MARK)
    said = described(error)
    assert said.startswith("StoreError (walks.unfog: row 7 was not kept) at no place; from OSError (No space")
    assert MARK not in said
    assert (
        described(ReplayMismatchError(f"decision 1 has denoised = {MARK}"))
        == "ReplayMismatchError at no place"
    )
    assert described(ValueError(MARK)) == "ValueError at no place"


def test_callers_are_told_files_without_folders_and_the_log_has_all(
    tmp_path: Path, written: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "of ann" / "walks.unfog"
    path.parent.mkdir()
    with running(path) as service:
        service.make()
        path.rename(path.with_name("away"))
        told_ = {"context": {"steps": 1.0, "sleep": 2.0}, "unit": f"{MARK}-unit", "key": f"{MARK}-key"}
        asked = [("decide", told_), ("replay", {}), (f"decisions/{MARK}/reward", {"value": 1.0})]
        found = [service.http.post(f"/v1/problems/walks/{at}", json=body) for at, body in asked]
        glance = service.http.get("/v1/problems")
        path.with_name("away").rename(path)
    assert [one.status_code for one in found] == [503, 503, 503]
    assert "walks.unfog was moved or taken away while it was open" in found[0].json()["detail"]
    assert not [one.text for one in (*found, glance) if "of ann" in one.text or str(tmp_path) in one.text]
    said = [one.getMessage() for one in written.records if one.name == "unfog.serve"]
    assert len([one for one in said if f"{path} was moved or taken away" in one]) == 2  # one of the writer
    assert not [one for one in said if MARK in one]


def test_what_a_store_says_of_a_key_or_a_decision_does_not_name_it(tmp_path: Path) -> None:
    """On a damaged file: it is told that it is, not what was looked for."""
    with unfog.live.open(tmp_path / "walks.unfog") as store:
        walks = store.problem("walks", **TERMS)
        made = walks.decide([1.0, 2.0], key=MARK)
        log = store.processor.log
        log.backend.alone.execute("UPDATE event SET checksum = 0")  # type: ignore[attr-defined]
        for look in (lambda: log.find("walks", MARK), lambda: log.of("walks", made.id)):
            with pytest.raises(StoreError, match=r"could not be read: .*row \d is damaged") as refused:
                look()
            assert MARK not in str(refused.value)
            assert made.id not in str(refused.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "/a/b c/w.unfog cannot be opened: no folder /a/b c",
            "w.unfog cannot be opened: no folder its folder",
        ),
        ("OSError: [Errno 13] no: '/x/y/z.unfog'", "OSError: [Errno 13] no: 'z.unfog'"),
        ("the disk failed (SQLite says: disk I/O error)", "the disk failed (SQLite says: disk I/O error)"),
        ("it can be reached at http://127.0.0.1:8000/x/y", "it can be reached at http://127.0.0.1:8000/x/y"),
    ],
)
def test_folders_go_and_nothing_else(words: str, said: str) -> None:
    assert errors.without_folders(words, [Path("/a/b c")]) == said
