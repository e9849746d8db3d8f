"""Data sets: found in the promised places, taken by hash alone, fetched whole or not at all."""

import hashlib
import io
import os
import socket
import struct
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.each import each
from unfog.lab.datasets import files as data_files
from unfog.lab.datasets.files import DATASETS, locate
from unfog.validation import InputError

LINES = [f"{i % 943 + 1}\t{i // 943 + 1}\t{i % 5 + 1}\t{880_000_000 + i}\n" for i in range(100_000)]
WHOLE = "".join(LINES).encode()
PAGE = b"\n<!DOCTYPE html><html><body>Please log in.</body></html>\n"


def zipped(**members: bytes) -> bytes:
    """An archive; names are given with __ for a slash."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/"), content)
    return made.getvalue()


GOOD = zipped(
    **{"ml-100k__README": b"read me", "ml-100k__u.data": WHOLE, "ml-100k__u1.base": b"1\t1\t5\t0\n"}
)


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Folders of a user's own, and a data set of a known hash."""
    found = {name: tmp_path / name for name in ("given", "variable", "home")}
    monkeypatch.setenv("UNFOG_DATA", str(found["variable"]))
    monkeypatch.setenv("XDG_CACHE_HOME", str(found["home"]))
    monkeypatch.setenv("no_proxy", "*")
    known = DATASETS["movielens"]._replace(sha256=hashlib.sha256(WHOLE).hexdigest())
    monkeypatch.setitem(DATASETS, "movielens", known)
    return {**found, "home": found["home"] / "unfog/data"}


def place(folder: Path, content: bytes, name: str = "ml-100k/u.data") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def files(folder: Path) -> list[str]:
    """Everything below a folder, empty folders included."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


# Where a file is looked for


@pytest.mark.parametrize("name", ["ml-100k/u.data", "u.data"])
@pytest.mark.parametrize("where", ["given", "variable", "home"])
def test_a_file_is_found_in_its_places(where: str, name: str, places: dict[str, Path]) -> None:
    path = place(places[where], WHOLE, name)
    assert locate("movielens", places["given"] if where == "given" else None) == path


def test_the_order_of_places(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    kept = place(places["home"], WHOLE)
    assert locate("movielens") == kept
    with pytest.raises(InputError, match="no file"):  # a folder that is given is the only one
        locate("movielens", places["given"])
    named = place(places["variable"], WHOLE)
    assert locate("movielens") == named
    monkeypatch.setenv("UNFOG_DATA", "")
    assert locate("movielens") == kept
    monkeypatch.delenv("UNFOG_DATA")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(places["given"]))
    kept = place(places["given"] / ".cache/unfog/data", WHOLE)
    assert locate("movielens") == kept


def test_a_wrong_file_is_refused_even_if_another_place_has_it(places: dict[str, Path]) -> None:
    place(places["variable"], WHOLE[:-1])
    place(places["home"], WHOLE)
    with pytest.raises(InputError, match="differs") as refused:
        locate("movielens")
    assert not isinstance(refused.value, data_files.DatasetNotFoundError)


def test_a_missing_file_says_what_to_do(places: dict[str, Path]) -> None:
    with pytest.raises(InputError) as refused:
        locate("movielens")
    said = str(refused.value)
    assert said.startswith("data: no file ml-100k/u.data of MovieLens-100K; allowed: ")
    for word in ("--data", "UNFOG_DATA", "`unfog data fetch movielens`", "licence: for research", "Konstan"):
        assert word in said
    assert str(places["variable"]) in said
    assert str(places["home"]) in said
    assert "\n" not in said
    with pytest.raises(InputError) as refused:
        locate("airquality", places["given"])
    assert "fetch" not in str(refused.value)
    assert "De Vito" in str(refused.value)


def test_a_command_can_be_told_one_folder(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_files, "_folder", None)
    assert data_files.has_folder()  # by the variable, though wrongly: there is no such folder
    places["variable"].mkdir()
    kept = place(places["home"], WHOLE)
    assert (data_files.has_folder(), locate("movielens")) == (False, kept)
    with pytest.raises(InputError, match=r"^data: no folder"):
        data_files.look_in(places["given"])
    places["given"].mkdir()
    data_files.look_in(places["given"])
    with pytest.raises(data_files.DatasetNotFoundError):
        locate("movielens")
    path = place(places["given"], WHOLE)
    assert (data_files.has_folder(), locate("movielens")) == (True, path)
    data_files.look_in(None)
    assert (data_files.has_folder(), locate("movielens")) == (False, kept)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"^data: 'netflix'; allowed: movielens, airquality, heartsteps, warfarin$"
    ):
        locate("netflix")


WRONG = {
    "altered": WHOLE.replace(b"\t5\t", b"\t4\t", 1),
    "cut": WHOLE[:-7],
    "longer": WHOLE + b"\n",
    "page": PAGE,
    "zip": GOOD,
    "empty": b"",
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_files_are_refused_by_their_hash(case: str, places: dict[str, Path]) -> None:
    content = WRONG[case]
    path = place(places["given"], content)
    with pytest.raises(InputError, match=r"^data: ml-100k/u\.data differs from MovieLens-100K; ") as refused:
        locate("movielens", places["given"])
    assert f"sha256 {DATASETS['movielens'].sha256}: remove {path}, then --data" in str(refused.value)
    assert "`unfog data fetch movielens`" in str(refused.value)
    assert path.read_bytes() == content


def test_an_unreadable_file_is_refused(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    place(places["given"], WHOLE)

    def denied(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(InputError, match=r"cannot be read \(Permission denied\)"):
        locate("movielens", places["given"])


@each("folder", ["x" * 300, "afile", "\0"])
def test_folders_that_are_none_hold_nothing(folder: str, tmp_path: Path) -> None:
    (tmp_path / "afile").write_text("here")
    with pytest.raises(InputError, match="no file"):
        locate("movielens", tmp_path / folder)


def test_a_file_is_hashed_once_until_it_changes(
    places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place(places["given"], WHOLE)
    asked: list[int] = []
    is_right = data_files.is_right

    def counted(dataset: data_files.Dataset, content: bytes) -> bool:
        asked.append(len(content))
        return is_right(dataset, content)

    monkeypatch.setattr(data_files, "is_right", counted)
    for _ in range(3):
        locate("movielens", places["given"])
    assert len(asked) == 1
    facts = path.stat()
    path.write_bytes(WHOLE[:-2] + b"0\n")
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))
    for _ in range(2):
        with pytest.raises(InputError, match="differs"):
            locate("movielens", places["given"])
    assert len(asked) == 2


def test_a_user_without_a_home_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert data_files.cache("data").name == "data"  # XDG_CACHE_HOME is enough
    monkeypatch.delenv("XDG_CACHE_HOME")
    with pytest.raises(InputError, match=r"^XDG_CACHE_HOME: "):
        locate("movielens")


# Downloads


class Server(ThreadingHTTPServer):
    """A server on this machine that misbehaves as asked, by path."""

    daemon_threads = True
    answers: dict[str, Callable[["Handler"], None]]

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.asked = {}, list[str]()
        self.halfway, self.go_on = threading.Event(), threading.Event()

    def url(self, name: str = "good") -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{name}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients here hang up whenever they like."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        name = self.path.removeprefix("/")
        self.server.asked.append(name)
        self.server.answers[name](self)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def body(self, content: bytes, said: int | None = None, code: int = 200) -> None:
        self.send_response(code)
        if said != -1:
            self.send_header("Content-Length", str(len(content) if said is None else said))
        self.end_headers()
        self.wfile.write(content)

    def gibberish(self) -> None:
        self.wfile.write(b"what?\r\n\r\n")

    def moved(self, name: str) -> None:
        self.send_response(302)
        self.send_header("Location", f"/{name}")
        self.end_headers()

    def chunked(self, content: bytes) -> None:
        """A transfer in pieces that breaks off in the first."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"%x\r\n" % (2 * len(content)) + content)

    def reset(self, content: bytes) -> None:
        self.body(content, said=2 * len(content))
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def stall(self, content: bytes) -> None:
        self.body(content, said=2 * len(content))
        self.wfile.flush()
        self.server.halfway.set()
        self.server.go_on.wait(60)


OTHER = zipped(**{"ml-100k__u.data": "".join(LINES[:99_722]).encode()})
BITTEN = GOOD[:5000] + bytes([GOOD[5000] ^ 1]) + GOOD[5001:]
HALF = GOOD[: len(GOOD) // 2]
ANSWERS: dict[str, Callable[[Handler], None]] = {
    "good": lambda h: h.body(GOOD),
    "moved": lambda h: h.moved("good"),
    "unmeasured": lambda h: h.body(GOOD, said=-1),
    "flat": lambda h: h.body(zipped(**{"u.data": WHOLE})),
    "evil": lambda h: h.body(zipped(**{"..__..__evil": b"evil", "__tmp__u.data": b"x", "u.data": WHOLE})),
    "missing": lambda h: h.body(b"gone", code=404),
    "down": lambda h: h.body(b"", code=503),
    "loop": lambda h: h.moved("loop"),
    "page": lambda h: h.body(PAGE),
    "empty": lambda h: h.body(b""),
    "short": lambda h: h.body(HALF, said=len(GOOD)),
    "wrong length": lambda h: h.body(GOOD, said=len(GOOD) + 1),
    "short, unmeasured": lambda h: h.body(HALF, said=-1),
    "short chunk": lambda h: h.chunked(HALF),
    "reset": lambda h: h.reset(HALF),
    "stalled": lambda h: h.stall(HALF),
    "huge": lambda h: h.body(b"PK", said=60_000_000),
    "gibberish": lambda h: h.gibberish(),
    "no member": lambda h: h.body(zipped(**{"ml-100k__README": b"read me", "other__u.data": WHOLE})),
    "corrupt": lambda h: h.body(BITTEN),
    "no zip": lambda h: h.body(WHOLE),
    "other data": lambda h: h.body(OTHER),
}
COMPLAINTS = {
    "missing": "the answer 404 Not Found from",
    "down": "the answer 503 Service Unavailable from",
    "loop": "the answer 302 Found from",
    "page": "no whole zip archive",
    "empty": "no whole zip archive",
    "short": f"the transfer broke off after {len(HALF):,} of {len(GOOD):,} bytes from",
    "wrong length": f"the transfer broke off after {len(GOOD):,} of {len(GOOD) + 1:,} bytes from",
    "short, unmeasured": "no whole zip archive",
    "short chunk": "the transfer broke off",
    "reset": "the transfer broke off",
    "stalled": r"the transfer broke off \(.*timed out",
    "huge": "more than 50,000,000 bytes from",
    "gibberish": "the transfer broke off",
    "no member": "no ml-100k/u.data in the archive",
    "corrupt": r"no whole zip archive \(.*\) from",
    "no zip": "no whole zip archive",
    "other data": "ml-100k/u.data differs from MovieLens-100K, in the archive",
}


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        made.answers = {name.replace(" ", "%20"): answer for name, answer in ANSWERS.items()}
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.go_on.set()
        made.shutdown()
        thread.join()


def get(server: Server, name: str, into: Path | None = None, **given: Any) -> Path:
    return data_files.fetch("movielens", server.url(name.replace(" ", "%20")), into, **given)


@pytest.mark.parametrize("name", ["good", "moved", "unmeasured", "flat", "evil"])
def test_a_good_archive_is_kept(name: str, server: Server, tmp_path: Path, places: dict[str, Path]) -> None:
    told: list[tuple[int, int]] = []
    path = get(server, name, progress=lambda done, total: told.append((done, total)))
    assert path == places["home"] / "ml-100k/u.data" == locate("movielens")
    assert path.read_bytes() == WHOLE
    assert path.stat().st_mode & 0o777 == 0o644
    assert files(tmp_path) == ["home", "home/unfog", "home/unfog/data"] + [
        f"home/unfog/data/ml-100k{rest}" for rest in ("", "/u.data")
    ]
    assert told[-1][0] == told[-1][1] > 0
    assert [done for done, _ in told] == sorted({done for done, _ in told})


def test_a_folder_can_be_named(server: Server, places: dict[str, Path]) -> None:
    path = get(server, "good", places["given"])
    assert path == places["given"] / "ml-100k/u.data" == locate("movielens", places["given"])


def test_what_is_there_is_not_fetched_again(server: Server, places: dict[str, Path]) -> None:
    path = place(places["home"], WHOLE)
    before = path.stat()
    assert get(server, "missing") == path
    assert (server.asked, path.stat().st_mtime_ns) == ([], before.st_mtime_ns)


@pytest.mark.parametrize("name", COMPLAINTS)
def test_broken_transfers_leave_nothing(
    name: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "stalled":
        monkeypatch.setattr(data_files, "SECONDS", 0.3)
    with pytest.raises(InputError, match=rf"^url: {COMPLAINTS[name]}") as refused:
        get(server, name)
    assert "\n" not in str(refused.value)
    assert "try again" in str(refused.value)
    assert files(tmp_path) == []


def test_a_body_without_end_is_cut_off(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_files, "MOST_BYTES", len(GOOD) - 1)
    with pytest.raises(InputError, match="more than"):
        get(server, "unmeasured")
    assert files(tmp_path) == []


def test_an_archive_that_swells_is_cut_off(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_files, "MOST_BYTES", len(WHOLE) - 1)
    assert len(GOOD) < len(WHOLE) - 1
    with pytest.raises(InputError, match="of over"):
        get(server, "good")
    assert files(tmp_path) == []


@pytest.mark.parametrize("name", ["good", "short", "other data"])
def test_a_wrong_file_is_replaced_by_a_checked_one_alone(
    name: str, server: Server, places: dict[str, Path]
) -> None:
    path = place(places["home"], PAGE)
    if name == "good":
        assert get(server, name).read_bytes() == WHOLE
    else:
        with pytest.raises(InputError, match=r"^url: "):
            get(server, name)
        assert path.read_bytes() == PAGE
    assert files(places["home"]) == ["ml-100k", "ml-100k/u.data"]


def test_nobody_listens(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # and no listen
        with pytest.raises(InputError, match=r"^url: no connection \(.*refused"):
            data_files.fetch("movielens", f"http://127.0.0.1:{unused.getsockname()[1]}/ml-100k.zip")
    assert files(tmp_path) == []


@each("url", ["", "file:///etc/passwd", "ftp://a/b.zip", "ml-100k.zip", "http://[::1", "data:,x"])
def test_addresses_of_other_kinds_are_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^url: .*http:// or https://"):
        data_files.fetch("movielens", url)
    assert files(tmp_path) == []


@each("url", ["http://", "http://a b/c", "http://127.0.0.1:port/", "http://127.0.0.1/\u00e9"])
def test_addresses_that_lead_nowhere_are_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^url: "):
        data_files.fetch("movielens", url)
    assert files(tmp_path) == []


def test_what_has_no_address_is_not_fetched(server: Server, places: dict[str, Path]) -> None:
    with pytest.raises(
        InputError, match=r"^data: Air Quality is not offered.*; allowed: movielens; or the --url"
    ):
        data_files.fetch("airquality")
    with pytest.raises(InputError, match=r"^url: no airquality/AirQualityUCI.csv in the archive"):
        data_files.fetch("airquality", server.url())


@pytest.mark.parametrize("step", ["mkdir", "open", "fsync", "replace"])
@pytest.mark.parametrize("trouble", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_failing_disks_and_interrupts_leave_no_file(
    step: str, trouble: BaseException, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*given: Any, **named: Any) -> None:
        raise trouble

    monkeypatch.setattr(Path if step == "mkdir" else os, step, failing)
    if isinstance(trouble, OSError):
        with pytest.raises(InputError, match=r"^into: ml-100k/u\.data cannot be written \(No space left"):
            get(server, "good")
    else:
        with pytest.raises(KeyboardInterrupt):
            get(server, "good")
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


def test_a_folder_that_cannot_be_made(server: Server, tmp_path: Path) -> None:
    (tmp_path / "afile").write_text("here")
    with pytest.raises(InputError, match=r"^into: "):
        get(server, "good", tmp_path / "afile")
    assert files(tmp_path) == ["afile"]


def test_an_interrupt_during_the_transfer(server: Server, tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get(server, "good", progress=interrupt)
    assert files(tmp_path) == []


def test_an_interrupt_while_unpacking(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*given: Any) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(zipfile.ZipExtFile, "read", interrupt)
    with pytest.raises(KeyboardInterrupt):
        get(server, "good")
    assert files(tmp_path) == []


def test_a_kill_during_the_transfer(server: Server, tmp_path: Path) -> None:
    code = "import sys; from unfog.lab.datasets.files import fetch; fetch('movielens', sys.argv[1])"
    process = subprocess.Popen([sys.executable, "-c", code, server.url("stalled")])
    assert server.halfway.wait(60)
    process.kill()
    process.wait()
    assert files(tmp_path) == []


def test_two_at_once(server: Server, places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    both, replace = threading.Barrier(2), os.replace

    def together(*given: Any) -> None:
        both.wait(60)
        replace(*given)

    monkeypatch.setattr(os, "replace", together)
    with ThreadPoolExecutor(2) as pool:
        paths = list(pool.map(lambda name: get(server, name), ["good", "unmeasured"]))
    assert [path.read_bytes() == WHOLE for path in paths] == [True, True]
    assert files(places["home"]) == ["ml-100k", "ml-100k/u.data"]


def test_damaged_archives_are_refused_or_right() -> None:
    small = DATASETS["movielens"]
    archive = zipped(
        **{"ml-100k__README": b"read me", "ml-100k__u.data": b"".join(WHOLE.splitlines(True)[:40])}
    )
    whole = data_files._unpack(archive, small, "url")
    rng = np.random.default_rng(0)
    for position in rng.integers(0, len(archive), 2000):
        hurt = bytearray(archive)
        hurt[position] ^= 1 << int(rng.integers(8))
        with suppress(InputError):
            assert data_files._unpack(bytes(hurt), small, "url") == whole


def test_a_folder_in_the_files_place_is_named(places: dict[str, Path]) -> None:
    (places["home"] / "ml-100k" / "u.data").mkdir(parents=True)
    with pytest.raises(InputError, match=r"^data: '.*u\.data' is a folder; allowed: the file ml-100k"):
        locate("movielens")
