"""docs/guide/service.md runs as printed: its service, commands, Python and JavaScript, in their order."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.docs.test_snippets import ROOT, blocks
from tests.serve.process import free_port
from tests.serve.running import running
from tests.services import missing
from unfog.cli import main
from unfog.serve import Client
from unfog.serve.operations import OPERATIONS

PAGE = "docs/guide/service.md"
TEXT = (ROOT / PAGE).read_text("utf-8")
RUN = {"sh": ["bash", "-euo", "pipefail", "-c"], "python": [sys.executable, "-W", "error", "-c"]}


@pytest.fixture(name="url")
def _url(tmp_path: Path) -> Iterator[str]:
    """The service that the page starts, at a port that is free."""
    [line] = re.findall(r"^(unfog serve --store walks.+)$", blocks(PAGE, "console")[0], re.M)
    port = free_port()
    words = [*shlex.split(line)[1:], "--port", str(port)]
    code = "import sys; from unfog.cli import main; main(sys.argv[1:])"
    service = subprocess.Popen(
        [sys.executable, "-c", code, *words], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert service.stdout is not None
    assert f"http://127.0.0.1:{port}" in service.stdout.readline()
    with Client(f"http://127.0.0.1:{port}") as client:
        client.get("/readyz")
    yield f"http://127.0.0.1:{port}"
    service.terminate()
    assert service.wait() == 0
    service.stdout.close()


@pytest.fixture(name="programs")
def _programs() -> None:
    """Those that the page runs."""
    for name in ("curl", "node"):
        if shutil.which(name) is None:
            missing(name)


def test_without_its_programs_it_is_skipped_and_fails_where_they_are_required(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("UNFOG_SERVICES", "required")
    with pytest.raises(pytest.fail.Exception, match="no curl: run make services"):
        request.getfixturevalue("programs")


def ran(language: str, code: str, url: str, folder: Path) -> str:
    code = code.replace("http://127.0.0.1:8000", url)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    if language == "js":
        (folder / "page.mjs").write_text(code)
    words = ["node", "page.mjs"] if language == "js" else [*RUN[language], code]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_page_runs_as_printed(programs: None, url: str, tmp_path: Path) -> None:
    found = re.findall(r"^```(sh|python|js)\n(.*?)^```", TEXT, re.S | re.M)
    said = [ran(language, code, url, tmp_path) for language, code in found]
    assert [language for language, _ in found] == ["sh", "sh", "python", "js", "sh", "sh"]
    assert not [text for text in said if '"type":"about:blank"' in text]
    shown, refused = (json.loads(block) for block in blocks(PAGE, "json"))
    made = json.loads((tmp_path / "made.json").read_text())
    assert list(shown) == list(made)
    assert shown["denoised"]["steps"] == pytest.approx(made["denoised"]["steps"], abs=0.1)
    assert (shown["arm"], shown["probability"]) == (made["arm"], pytest.approx(made["probability"]))
    again = httpx.post(f"{url}/v1/problems/walks/decide", json={"context": {"steps": 3100}})
    assert again.json() == refused
    assert refused["detail"].replace("null", "None") in said[2]
    assert re.fullmatch(r"(send|wait) learnt\n", said[3])
    with Client(url) as client:
        kinds = [one["kind"] for one in client.problem("walks").events()]
    assert (kinds.count("decide"), kinds.count("reward")) == (4, 3)
    assert (tmp_path / "copies" / "monday.unfog").exists()


def test_every_operation_is_in_its_table() -> None:
    rows = "".join(re.findall(r"^\|.*", TEXT, re.M))
    for one in OPERATIONS:
        last = one.path.rsplit("/", 1)[1]
        assert last == "{name}" or last in rows, one.path


def known(capsys: pytest.CaptureFixture[str], *words: str) -> set[str]:
    """The options of a command; those of the examples that follow are not its own."""
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    return set(re.findall(r"^  (--[\w-]+)", capsys.readouterr().out.split("Examples:")[0], re.M))


def test_its_options_are_those_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    lines = re.findall(r"^unfog serve (.*)$", "".join(blocks(PAGE, "console")), re.M)
    told = {keys: set[str]() for keys in (False, True)}
    for line in lines:
        told[line.startswith("keys ")] |= {word for word in line.split() if word.startswith("--")}
    told[False] |= set(re.findall(r"\| [\w, ]+ \| `(--[\w-]+)` \|$", TEXT, re.M))
    assert len(told[False]) >= 8
    assert told[False] <= known(capsys, "serve")
    assert told[True] == {"--store", "--scope"}
    assert told[True] <= known(capsys, "serve", "keys", "add")


def test_its_metrics_are_measured(tmp_path: Path) -> None:
    with running(tmp_path / "a.unfog") as found:
        found.make()
        measured = set(re.findall(r"^# TYPE (\w+)", found.http.get("/metrics").text, re.M))
    told = set(re.findall(r"`(unfog_\w+)`", TEXT))
    assert len(told) > 8
    assert told <= measured
