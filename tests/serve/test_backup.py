"""Copies of a store that is served: made while it goes on, whole or not there, and stores themselves."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import unfog
from tests.serve.process import free_port
from tests.serve.running import TERMS, running
from unfog.cli import main
from unfog.live import ConflictError, StoreError
from unfog.serve import Client
from unfog.serve.settings import Settings

# A service that copies a page at a time, with rests that leave time to kill it.
SLOWLY = """
import sys
from unfog.live import sqlite
sqlite.PAGES, sqlite.REST = 1, 0.05
from unfog.cli import main
main(["serve", *sys.argv[1:]])
"""


@contextmanager
def deciding(url: str) -> Iterator[None]:
    """While it lasts decisions are made and rewarded."""
    over = threading.Event()

    def visit() -> None:
        with Client(url) as client:
            walks = client.problem("walks")
            while not over.is_set():
                walks.reward(walks.decide([1.0, -2.0], unit="ann").id, 0.5)

    thread = threading.Thread(target=visit)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def grown(client: Client, by: int) -> None:
    """Wait until so many events are new."""
    first = client.problem("walks").describe()["decisions"]
    while client.problem("walks").describe()["decisions"] < first + by:
        time.sleep(0.001)


@pytest.mark.slow
def test_a_copy_in_place_of_the_store_has_everything_up_to_it(tmp_path: Path) -> None:
    path, copies = tmp_path / "walks.unfog", tmp_path / "copies"
    with running(path, Settings(backups=copies)) as found, Client(found.url) as client:
        client.problem("walks", **TERMS)
        with deciding(found.url):
            grown(client, 30)
            before = client.problem("walks").events()
            client.backup("copy.unfog")
            grown(client, 30)
        lines = list(client.export("walks"))
        with pytest.raises(ConflictError, match=r"^name: 'copy\.unfog'; allowed: a name that no copy has"):
            client.backup("copy.unfog")
    assert os.listdir(copies) == ["copy.unfog"]
    with sqlite3.connect(copies / "copy.unfog") as raw:
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    raw.close()
    path.rename(tmp_path / "lost.unfog")
    (copies / "copy.unfog").rename(path)
    with running(path) as found, Client(found.url) as client:
        kept = list(client.export("walks"))
        walks = client.problem("walks")
        assert len(before) <= len(kept) < len(lines)
        assert kept == lines[: len(kept)]
        with unfog.live.open(tmp_path / "again.unfog", sync="normal") as again:
            again.import_events(kept)
            assert again.problem("walks").state_hash() == walks.state_hash()
        assert client.replay(verify=True)["walks"].same
        number = walks.describe()["decisions"]
        assert walks.decide([1.0, -2.0]).number == number


@pytest.mark.parametrize("name", ["copy.unfog", None])
def test_copies_that_are_asked_for_at_once_are_whole(tmp_path: Path, name: str | None) -> None:
    copies = tmp_path / "copies"
    with running(tmp_path / "walks.unfog", Settings(backups=copies)) as found, Client(found.url) as client:
        walks = client.problem("walks", **TERMS)
        for _ in range(20):
            walks.decide([1.0, -2.0])
        with ThreadPoolExecutor(6) as pool:
            asked = [pool.submit(found.http.post, "/v1/backup", json={"name": name}) for _ in range(6)]
        answers = [one.result() for one in asked]
    done = [one.json() for one in answers if one.status_code == 200]
    assert len(done) == (6 if name is None else 1)
    refused = [one.json() for one in answers if one.status_code != 200]
    assert {(one["status"], one["field"]) for one in refused} <= {(409, "name")}
    assert sorted(os.listdir(copies)) == sorted(one["name"] for one in done)
    for one in done:
        path = copies / one["name"]
        assert (path.stat().st_mode & 0o777, path.stat().st_size) == (0o600, one["bytes"])
        with unfog.live.open(path) as copy:
            assert copy.problem("walks").describe()["decisions"] == 20


def test_a_folder_that_cannot_be_written_is_503_without_its_place(tmp_path: Path) -> None:
    copies = tmp_path / "of ann" / "copies"
    with running(tmp_path / "walks.unfog", Settings(backups=copies)) as found:
        (tmp_path / "of ann").touch()  # where a folder should be
        answer = found.http.post("/v1/backup", json={"name": "copy.unfog"})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert answer.json()["detail"].startswith("there is no copy at copy.unfog: ")
    assert "of ann" not in answer.text


def test_a_folder_that_cannot_be_made_is_refused_at_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    told = ["serve", "--store", str(tmp_path / "a.unfog"), "--port", "0", "--backups"]
    with pytest.raises(SystemExit) as left:
        main([*told, str(tmp_path / "file" / "copies")])
    assert left.value.code == 2
    assert "a folder that can be made, and written to" in capsys.readouterr().err
    assert not (tmp_path / "a.unfog").exists()


@pytest.mark.slow
def test_half_a_copy_of_a_service_that_was_killed_has_another_name(tmp_path: Path) -> None:
    path, copies, port = tmp_path / "walks.unfog", tmp_path / "copies", free_port()
    words = [
        sys.executable,
        "-c",
        SLOWLY,
        "--store",
        str(path),
        "--backups",
        str(copies),
        "--port",
        str(port),
    ]
    service = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert service.stdout is not None
    service.stdout.readline()
    with Client(f"http://127.0.0.1:{port}", retries=8) as client:
        made = client.problem("walks", **TERMS).decide([1.0, -2.0], key="k")
        copying = threading.Thread(target=_copied, args=(client,))
        copying.start()
        while not copies.exists() or not list(copies.iterdir()):
            time.sleep(0.001)
        service.send_signal(signal.SIGKILL)
        service.communicate()
        copying.join()
    left = [one.name for one in copies.iterdir()]
    assert left  # it was killed in the middle
    assert all(one.startswith("copy.unfog-") for one in left)
    with running(path, Settings(backups=copies)) as found, Client(found.url) as client:
        assert client.problem("walks").decide([1.0, -2.0], key="k") == made
        client.backup("copy.unfog")
    assert sorted(one.name for one in copies.glob("*.unfog")) == ["copy.unfog"]
    with unfog.live.open(copies / "copy.unfog") as copy:
        assert copy.problem("walks").decide([1.0, -2.0], key="k") == made
        with pytest.raises(ConflictError):
            copy.problem("walks").decide([0.0, 0.0], key="k")


def _copied(client: Client) -> None:
    with pytest.raises(StoreError, match="does not answer"):
        client.backup("copy.unfog")
