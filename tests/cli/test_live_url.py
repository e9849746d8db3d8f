"""`unfog live` with --url: every command says the same, and ends the same, as on the file of a store."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_live import TERMS, Capture, _elsewhere, answer, refusal, unfog
from tests.serve.running import Running, running
from unfog.serve import auth
from unfog.serve.auth import Keyed
from unfog.serve.key_storage import ring_of

__all__ = ["_elsewhere"]

CONTEXT = '{"steps": 1648, "sleep": null}'
BATCH = '{"context": {"steps": 1, "sleep": 7}, "unit": "bob"}\n{"context": [5000, 8], "key": "k"}\n'
TABLE = "steps,sleep,arm,reward,key\n5000,7,send,0.5,t1\n6000,,wait,,t2\n"
Script = list[tuple[str, ...]]
SCRIPT: Script = [
    ("create", "walks", "--terms", "walks.toml"),
    ("create", "walks", "--terms", "walks.toml"),
    ("decide", "walks", "--context", CONTEXT, "--unit", "ann"),
    ("decide", "walks", "--batch", "asked.ndjson"),
    ("reward", "walks", "<0>", "-1.5"),
    ("reward", "walks", "<0>", "2"),
    ("reveal", "walks", "<0>", '{"steps": 7065}'),
    ("cancel", "walks", "<1>"),
    ("arms", "walks", "--add", "call", "--retire", "send"),
    ("arms", "walks"),
    ("pin", "walks", "call"),
    ("pin", "walks", "nothing"),
    ("unpin", "walks"),
    ("shadow", "walks", "naive"),
    ("shadow", "walks", "naive", "--remove"),
    ("import", "past.csv", "--name", "walks"),
    ("import", "past.csv", "--name", "nothing"),
    ("import", "bad.csv", "--name", "walks"),
    ("show",),
    ("show", "--json"),
    ("show", "walks", "--unit", "ann", "--context", CONTEXT),
    ("show", "walks", "--json"),
    ("log", "walks", "--since", "2", "--limit", "3"),
    ("log", "nothing"),
    ("export", "walks"),
    ("export", "walks", "--csv"),
    ("replay", "--verify"),
    ("replay", "walks"),
    ("erase", "--unit", "ann", "--yes"),
    ("erase", "--unit", "ann", "--yes"),
    ("decide", "walks", "--context", "{"),
    ("decide", "walks", "--context", '{"steps": 1}'),
]


@pytest.fixture(name="service")
def _service(tmp_path: Path) -> Iterator[Running]:
    Path("asked.ndjson").write_text(BATCH)
    Path("past.csv").write_text(TABLE)
    Path("bad.csv").write_text(TABLE.replace("6000", "six"))
    Path("other.toml").write_text(TERMS.replace("late", "unfog"))
    with running(tmp_path / "served.unfog") as found:
        yield found


Said = list[tuple[int, str, str]]


def played(capsys: Capture, script: Script, *, store: tuple[str, ...], more: tuple[str, ...] = ()) -> Said:
    """What every command of the script says; what is each store's own is made the same."""
    ids: list[str] = []
    found = []
    for command, *words in script:
        words = [ids[int(word[1])] if word in ("<0>", "<1>") else word for word in words]
        code, out, err = unfog(capsys, command, *store, *words, *more)
        ids += re.findall(r'^{"id": "([^"]+)"', out, re.M)
        found.append((code, _alike(out, ids), _alike(err, ids)))
    return found


def _alike(text: str, ids: list[str]) -> str:
    for number, one in enumerate(ids):
        text = text.replace(one, f"<{number}>")
    text = re.sub(r"\b\d+-[0-9a-f]{8}\b", "<id>", text)
    text = re.sub(r'"(time|uid)": ("?)[0-9a-f.]+\2', r'"\1": 0', text)
    text = re.sub(r"(<\w+>,\d+,)[\d.]{10,}", r"\1<time>", text)
    text = re.sub(r'"key": "[0-9a-f]{32}"', '"key": null', text)
    return re.sub(r'"store": "[^"]+"', '"store": ""', text)


@pytest.mark.slow
def test_every_command_says_the_same(capsys: Capture, service: Running) -> None:
    ours = played(capsys, SCRIPT, store=("own.unfog",))
    theirs = played(capsys, SCRIPT, store=(), more=("--url", service.url))
    for words, one, other in zip(SCRIPT, ours, theirs, strict=True):
        assert other == one, words
    assert {code for code, _, _ in ours} == {0, 2}


@pytest.mark.parametrize("way", ["given and ignored", "a store that is an address"])
def test_other_ways_to_say_it(capsys: Capture, service: Running, way: str) -> None:
    ours = played(capsys, SCRIPT[:6], store=("own.unfog",))
    store: tuple[str, ...] = (service.url,)
    more: tuple[str, ...] = ()
    if way == "given and ignored":
        store, more = ("nothing.unfog",), (f"--url={service.url}",)
    assert played(capsys, SCRIPT[:6], store=store, more=more) == ours
    assert not Path("nothing.unfog").exists()


def test_a_figure_is_drawn_from_what_the_service_says(capsys: Capture, service: Running) -> None:
    at = ("--url", service.url)
    answer(capsys, "create", "walks", "--terms", "walks.toml", *at)
    answer(capsys, "decide", "walks", "--context", CONTEXT, *at)
    code, out, _ = unfog(capsys, "show", "walks", "--figure", "walks.png", *at)
    assert (code, "figure: walks.png" in out) == (0, True)
    assert Path("walks.png").read_bytes().startswith(b"\x89PNG")


def test_logs_go_out_and_come_in(capsys: Capture, service: Running) -> None:
    at = ("--url", service.url)
    answer(capsys, "create", "walks", "--terms", "walks.toml", *at)
    answer(capsys, "decide", "walks", "--context", CONTEXT, *at)
    assert unfog(capsys, "export", "walks", "--out", "walks.ndjson", *at)[0] == 0
    assert answer(capsys, "import", "copy.unfog", "walks.ndjson")["events"] == 2
    again = answer(capsys, "import", "walks.ndjson", *at)
    assert (again["events"], again["message"]) == (0, "all of it was there already")
    other = answer(capsys, "import", "walks.ndjson", "--name", "other", *at)
    assert (other["problem"], other["events"]) == ("other", 2)


def test_the_key_comes_from_a_file_or_the_environment(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "keyed.unfog")
    key, secret = auth.made(["admin"], [], "", 0.0)
    ring_of(path).add(key)
    monkeypatch.delenv("UNFOG_KEY", raising=False)
    with running(Path(path), auth=Keyed(ring_of(path))) as found:
        at = ("show", "--url", found.url)
        assert "UNFOG_KEY" in refusal(capsys, *at)
        Path("key").write_text(f"{secret}\n")
        assert unfog(capsys, *at, "--service-key-file", "key")[0] == 0
        assert "service-key-file: none cannot be read" in refusal(capsys, *at, "--service-key-file", "none")
        monkeypatch.setenv("UNFOG_KEY", secret)
        assert unfog(capsys, *at, "--json") == (0, "{}\n", "")


def test_what_is_no_address_is_refused(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unfog.serve.http_client.FIRST", 0.0001)
    said = "url: walks.unfog; allowed: the address of a service, such as http://127.0.0.1:8000"
    assert refusal(capsys, "show", "--url", "walks.unfog") == said
    assert "does not answer: Connection refused" in refusal(capsys, "show", "http://127.0.0.1:1", code=1)


def test_who_finds_the_file_held_is_told_where_to_ask(capsys: Capture, service: Running) -> None:
    """A command of another process: in this one it is said that this process holds it."""
    store = service.service.open_stores.stores()[0]
    store.processor.log.announce(service.url)
    words = [sys.executable, "-c", "from unfog.cli import main; main()", "live", "show", str(store.path)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 2
    assert "is held by process" in done.stderr
    assert done.stderr.endswith(f"ask it there with --url {service.url}\n")
    assert json.loads(unfog(capsys, "show", "--json", "--url", service.url)[1]) == {}
