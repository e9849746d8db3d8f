"""`unfog data` as a user meets it."""

import hashlib
import io
import json
import re
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from unfog.cli import main
from unfog.lab.datasets.files import DATASETS, WHERE

Capture = pytest.CaptureFixture[str]
WHOLE = b"1\t2\t3\t880000000\n"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without data, and a data set of a known hash."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("UNFOG_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    known = DATASETS["movielens"]._replace(sha256=hashlib.sha256(WHOLE).hexdigest())
    monkeypatch.setitem(DATASETS, "movielens", known)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as archive:
            archive.writestr("ml-100k/u.data", WHOLE)
        content = made.getvalue()
        self.send_response(404 if self.path == "/missing" else 200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: 50 if self.path == "/short" else None])

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


@pytest.fixture
def address() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def unfog(capsys: Capture, *words: str) -> tuple[int, str, str]:
    """Run a command; its exit code, stdout and stderr."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


@pytest.mark.parametrize("words", [(), ("list",), ("fetch",)])
def test_help_has_an_example(words: tuple[str, ...], capsys: Capture) -> None:
    code, out, _ = unfog(capsys, "data", *words, "--help")
    assert code == 0
    assert f"unfog data {words[0] if words else 'fetch'}" in out.split("Example")[1]


def test_fetch_says_the_licence_first_and_where_it_goes(capsys: Capture, address: str) -> None:
    target = Path("cache/unfog/data/ml-100k/u.data").resolve()
    code, out, err = unfog(capsys, "data", "fetch", "movielens", "--url", f"{address}/ml-100k.zip")
    assert (code, err) == (0, "")
    licence, download, kept = out.splitlines()
    assert licence.startswith("MovieLens-100K, licence: for research; not to be redistributed")
    assert download == f"downloading {address}/ml-100k.zip for {target}"
    assert kept == f"kept in {target}"
    assert target.read_bytes() == WHOLE
    code, out, err = unfog(capsys, "data", "fetch", "movielens", "--url", f"{address}/missing")
    assert (code, out, err) == (0, f"{target} is there already, and right: nothing to do\n", "")


def test_fetch_into_a_folder(capsys: Capture, address: str) -> None:
    code, out, _ = unfog(capsys, "data", "fetch", "movielens", "--url", address, "--into", "here")
    assert code == 0
    assert out.splitlines()[-1] == "to be used by --data here, or with UNFOG_DATA=here"
    assert Path("here/ml-100k/u.data").read_bytes() == WHOLE
    assert [path.name for path in Path().iterdir()] == ["here"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["netflix"], "data: 'netflix'; allowed: movielens, airquality, heartsteps, warfarin"),
        (["airquality"], "data: Air Quality is not offered for download"),
        (["movielens", "--url", "ftp://a/b"], "url: ftp://a/b; allowed: "),
        (["movielens", "--url", "ADDRESS/missing"], "url: the answer 404 Not Found from http://127.0.0.1:"),
        (["movielens", "--url", "ADDRESS/short"], "url: the transfer broke off after 50 of "),
        (["movielens", "--url", "ADDRESS", "--into", "/dev/null"], "into: ml-100k/u.data cannot be written"),
    ],
)
def test_trouble_is_one_line_and_leaves_nothing(
    words: list[str], complaint: str, capsys: Capture, address: str
) -> None:
    code, _, err = unfog(capsys, "data", "fetch", *(word.replace("ADDRESS", address) for word in words))
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith(f"unfog: {complaint}")
    assert not any(Path().iterdir())


def test_list_says_what_is_there(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = unfog(capsys, "data", "list")
    assert (code, err) == (0, "")
    assert "not here, can be fetched: no file ml-100k/u.data of MovieLens-100K\n" in out
    assert "get it with `unfog data fetch movielens`\n" in out
    assert out.count("licence: ") == len(DATASETS)
    assert max(map(len, out.splitlines())) <= 80
    Path("folder").mkdir()
    Path("folder/u.data").write_bytes(WHOLE)
    assert " here: folder/u.data\n" in unfog(capsys, "data", "list", "--data", "folder")[1]
    monkeypatch.setenv("UNFOG_DATA", "folder")
    _, out, _ = unfog(capsys, "data", "list")
    assert " here: folder/u.data\n" in out
    assert "get it with" not in out
    Path("folder/u.data").write_bytes(b"<html>")
    _, out, _ = unfog(capsys, "data", "list")
    assert "wrong file: ml-100k/u.data differs from MovieLens-100K\n" in out
    assert "get it with `unfog data fetch movielens`\n" in out


def test_list_says_why_one_cannot_be_fetched_and_where_it_is_to_be_had(capsys: Capture) -> None:
    _, out, _ = unfog(capsys, "data", "list")
    blocks = {block.split()[0]: " ".join(block.split()) for block in re.split(r"\n(?! )", out.strip())}
    assert list(blocks) == list(DATASETS)
    for name, dataset in DATASETS.items():
        bring = dataset.url is None
        assert ("not here, cannot be fetched: no file" in blocks[name]) == bring
        assert ("why: " in blocks[name]) == ("get it from " in blocks[name]) == bring
        assert (f"put it as {dataset.file} into a folder" in blocks[name]) == bring
    assert "UCI Machine Learning Repository, data set Air Quality" in blocks["airquality"]
    facts = json.loads(unfog(capsys, "data", "list", "--json")[1])
    assert {name for name, row in facts.items() if row["fetch"]} == {
        name for name, row in facts.items() if row["url"]
    }
    assert all((row["why"] is None) == (row["url"] is not None) for row in facts.values())
    assert set(WHERE) <= {name for name, row in DATASETS.items() if row.url is None}


def test_list_for_programs(capsys: Capture) -> None:
    Path("ml-100k").mkdir()
    Path("ml-100k/u.data").write_bytes(WHOLE)
    code, out, err = unfog(capsys, "data", "list", "--data", ".", "--json")
    assert (code, err) == (0, "")
    facts = json.loads(out)
    assert list(facts) == list(DATASETS)
    row = facts["movielens"]
    assert (row["path"], row["problem"]) == ("ml-100k/u.data", None)
    assert row["sha256"] == DATASETS["movielens"].sha256
    assert (facts["airquality"]["path"], facts["airquality"]["url"]) == (None, None)
    assert facts["airquality"]["problem"].startswith("no file airquality/AirQualityUCI.csv")


def test_listing_needs_no_extra() -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['xarray', 'scipy', 'sklearn', 'matplotlib', 'jax']))\n"
        "from unfog.cli import main; main(['data', 'list'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
