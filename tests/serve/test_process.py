"""`unfog serve` as a process of its own: how it starts, what it refuses, and how it ends."""

import io
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

import unfog
from tests.serve.running import TERMS
from unfog.cli import main

pytestmark = pytest.mark.slow
RUN = [sys.executable, "-c", "from unfog.cli import main; main()"]
ASK = {"context": {"steps": 1.0, "sleep": 2.0}}
EVENTS = b"GET /v1/problems/walks/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
LONG = [f"{i}".zfill(200) for i in range(10)]  # names that make a log of megabytes


class Ended(NamedTuple):
    """What a command left."""

    returncode: int
    stdout: str
    stderr: str


def command(*words: str) -> Ended:
    """A command to its end, in this process: to start one takes a second."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as left:
        main(words)
    return Ended(int(left.value.code or 0), out.getvalue(), err.getvalue())


@contextmanager
def serving(path: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and where it listens."""
    told = [*RUN, "serve", "--store", str(path), "--port", "0", *words]
    with subprocess.Popen(told, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            found = re.fullmatch(r"unfog serves \S+ at (http://\S+) \(page\), .*; stop with Ctrl-C\n", said)
            assert found is not None, (said, process.poll())
            while httpx.get(f"{found[1]}/readyz").status_code != 200:
                time.sleep(0.01)
            yield process, found[1]
        finally:
            process.kill()


def ended(process: subprocess.Popen[str], *signals: int) -> tuple[int, str, str]:
    """How it ends: code, stdout, stderr."""
    for one in signals:
        process.send_signal(one)
        time.sleep(0.3)
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


def test_it_serves_tells_others_where_and_ends_in_good_order(tmp_path: Path) -> None:
    path = tmp_path / "walks.unfog"
    with serving(path, "--max-bulk", "1024") as (process, url):
        assert httpx.post(f"{url}/v1/problems", json={"name": "walks", **TERMS}).status_code == 201
        kind = {"Content-Type": "application/x-ndjson"}
        large = httpx.post(f"{url}/v1/problems/copy/events", content=" " * 1025, headers=kind)
        assert large.status_code == 413
        decision = httpx.post(f"{url}/v1/problems/walks/decide", json=ASK).json()
        for words in (("decide", str(path), "walks", "--context", '{"steps": 1}'), ("show", str(path))):
            refused = command("live", *words)
            assert (refused.returncode, refused.stdout) == (2, "")
            assert f"held by process {process.pid} since " in refused.stderr
            assert f"it can be reached at {url}" in refused.stderr
        refused = command("serve", "--store", str(path), "--port", "0")
        assert (refused.returncode, f"held by process {process.pid} since " in refused.stderr) == (2, True)
        assert ended(process, signal.SIGTERM) == (0, "", "")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["walks.unfog"]
    with unfog.live.open(path) as store:
        assert [one["decision"] for one in store.events("walks")] == [None, decision["id"]]
        assert store.processor.log.snapshot("walks") is not None


def test_it_ends_with_the_code_0_also_in_a_hurry(tmp_path: Path) -> None:
    """Somebody has asked for a log and does not listen, and would be waited for."""
    path = tmp_path / "walks.unfog"
    with serving(path) as (process, url):
        terms = {"name": "walks", "context": LONG, "arms": ["send", "wait"]}
        assert httpx.post(f"{url}/v1/problems", json=terms).status_code == 201
        asked = [{"context": dict.fromkeys(LONG, 1.0)}] * 300
        for _ in range(6):
            assert httpx.post(f"{url}/v1/problems/walks/decide", json=asked).status_code == 200
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as slow:
            slow.sendall(EVENTS)
            assert slow.recv(1)
            assert ended(process, signal.SIGTERM, signal.SIGTERM)[:2] == (0, "")
    with unfog.live.open(path) as store:
        assert store.processor.log.snapshot("walks") is not None


def test_what_is_under_way_is_done_when_it_stops(tmp_path: Path) -> None:
    """Every decision that was answered is in the log, once; who came too late was told so."""
    path, answered = tmp_path / "walks.unfog", list[str]()
    with serving(path, "--sync", "normal") as (process, url):
        httpx.post(f"{url}/v1/problems", json={"name": "walks", **TERMS})

        def decide() -> None:
            with httpx.Client(base_url=url) as client:
                while True:
                    try:
                        found = client.post("/v1/problems/walks/decide", json=ASK)
                    except httpx.TransportError:
                        return
                    if found.status_code != 200:
                        return
                    answered.append(found.json()["id"])

        threads = [threading.Thread(target=decide) for _ in range(4)]
        for thread in threads:
            thread.start()
        while len(answered) < 100:
            assert any(thread.is_alive() for thread in threads)
            time.sleep(0.01)
        assert ended(process, signal.SIGTERM) == (0, "", "")
        for thread in threads:
            thread.join()
    with unfog.live.open(path) as store:
        logged = [one["decision"] for one in store.events("walks") if one["kind"] == "decide"]
    assert set(answered) <= set(logged)
    assert len(logged) - len(answered) <= 4  # decided and written, and the connection gone


def test_what_cannot_be_served_is_one_sentence(tmp_path: Path) -> None:
    path = str(tmp_path / "walks.unfog")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        found = command("serve", "--store", path, "--port", port)
        allowed = "allowed: a port that is free; 0 takes one"
        assert (found.returncode, found.stderr) == (
            2,
            f"unfog: port: {port} at 127.0.0.1 is taken; {allowed}\n",
        )
    for host, said in (
        ("0.0.0.0", "no keys; allowed: 127.0.0.1; or make a key first: unfog serve keys add --store"),
        ("::", "no keys"),
        ("no.such.name.invalid", "an address or a name of this machine"),
        ("192.0.2.1", "cannot be had"),
    ):
        found = command("serve", "--store", path, "--port", "0", "--host", host)
        assert (host, found.returncode, found.stderr.count("\n")) == (host, 2, 1)
        assert said in found.stderr
    found = command("serve", "--store", path, "--advertise", "walks:8000")
    assert (found.returncode, "unfog: advertise: 'walks:8000'" in found.stderr) == (2, True)
    assert command("serve").stderr == "unfog: store: not given; allowed: --store FILE; or --demo\n"
    assert list(tmp_path.iterdir()) == []


def test_keys_come_and_go_while_it_runs_beyond_this_machine_until_ctrl_c(
    tmp_path: Path,
) -> None:
    path = tmp_path / "walks.unfog"
    kept = ("--store", str(path))
    told = ("--scope", "read", "--problem", "walks", "--note", "the page")
    made = command("serve", "keys", "add", *kept, *told)
    key, secret = made.stdout.strip(), made.stdout.strip().split("_", 2)[2]
    assert (made.returncode, re.fullmatch(r"unfog_[0-9a-f]{8}_[\w-]{43}", key) is not None) == (0, True)
    listed = command("serve", "keys", "list", *kept)
    assert re.fullmatch(r"[0-9a-f]{8}   read   walks   made \S+ \S+ UTC   the page\n", listed.stdout)
    with serving(path, "--host", "0.0.0.0") as (process, url):
        at = url.replace("0.0.0.0", "127.0.0.1") + "/v1/problems"
        bearer = {"Authorization": f"Bearer {key}"}
        assert (httpx.get(at).status_code, httpx.get(at, headers=bearer).status_code) == (401, 200)
        assert command("serve", "keys", "revoke", key.split("_")[1], *kept).returncode == 0
        until = time.monotonic() + 10
        while httpx.get(at, headers=bearer).status_code != 401:
            assert time.monotonic() < until
            time.sleep(0.1)
        assert ended(process, signal.SIGINT) == (0, "", "")
    assert secret not in command("serve", "keys", "list", *kept, "--json").stdout
    refused = command("serve", "--host", "0.0.0.0", "--port", "0", *kept)
    assert (refused.returncode, "there are no keys" in refused.stderr) == (2, True)
