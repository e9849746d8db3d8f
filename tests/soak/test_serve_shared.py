"""Two services on one database, over HTTP: owners killed, stopped, ended; the database restarted."""

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.serve.pair import Load, Pair, Process, check
from tests.services import missing

pytestmark = pytest.mark.soak
NAME = "walks"
SERVICES = Path(__file__).parents[2] / "deploy" / "services.sh"
KILLS, STOPS, ENDS, RESTARTS = 50, 20, 10, 5


@contextlib.contextmanager
def loaded(dsn: str) -> Iterator[tuple[Pair, Load]]:
    """Two services under load; in the end all that was acknowledged is looked for."""
    pair = Pair(dsn)
    try:
        pair.make(NAME)
        load = Load(pair, NAME)
        try:
            for process in pair.processes:
                load.served(process)
            yield pair, load
        finally:
            load.end()
        for process in pair.processes:
            process.until_ready()
        rows = check(pair, load, NAME, verify=True)
        assert rows >= len(load.kept) > 100
    finally:
        pair.end()


def kill(pair: Pair, load: Load, owner: Process) -> float:
    owner.send(signal.SIGKILL)
    seconds = load.served(pair.other(owner))
    owner.process.wait()
    owner.start()
    owner.until_ready()
    return seconds


def stop(pair: Pair, load: Load, owner: Process) -> float:
    ((epoch,),) = pair.said("SELECT epoch FROM owner")
    owner.send(signal.SIGSTOP)
    seconds = load.served(pair.other(owner))
    of_old = f"SELECT count(*) FROM event WHERE epoch <= {int(epoch)}"
    before = pair.said(of_old)
    owner.send(signal.SIGCONT)
    load.served(owner)
    assert pair.said(of_old) == before
    return seconds


def end(pair: Pair, load: Load, owner: Process) -> float:
    owner.send(signal.SIGTERM)
    seconds = load.served(pair.other(owner))
    assert owner.process.wait() == 0
    owner.start()
    owner.until_ready()
    return seconds


@pytest.mark.parametrize(("do", "times", "most"), [(kill, KILLS, 5), (stop, STOPS, 5), (end, ENDS, 1.5)])
def test_an_owner_is_taken_over(
    postgres: str,
    do: Callable[[Pair, Load, Process], float],
    times: int,
    most: float,
    capsys: pytest.CaptureFixture[str],
) -> None:
    chance, taken = random.Random(17), []
    with loaded(postgres) as (pair, load):
        for _ in range(times):
            time.sleep(chance.uniform(0.05, 0.5))
            taken.append(do(pair, load, pair.owner(NAME)))
    said = f"{times} times {do.__name__}: nobody served for {max(taken):.2f} s at most"
    with capsys.disabled():
        print(f"\n{said}, {sum(taken) / times:.2f} s on average; {len(load.kept)} acknowledged")
    assert max(taken) < most


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A server of its own, that may be restarted."""
    if not os.environ.get("UNFOG_POSTGRES"):
        missing("PostgreSQL")
    file = tmp_path / "services"
    own = {name: value for name, value in os.environ.items() if not name.startswith("UNFOG_POSTGRES")}
    subprocess.run([SERVICES, "start", file], check=True, env=own)
    try:
        told = [line.removeprefix("export ").partition("=") for line in file.read_text().splitlines()]
        yield {name: value for name, _, value in told}
    finally:
        subprocess.run([SERVICES, "stop", file], check=True, env=own)


def test_the_database_is_restarted(cluster: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    taken = []
    with loaded(cluster["UNFOG_POSTGRES"]) as (pair, load):
        for _ in range(RESTARTS):
            database(cluster, "restart")
            taken.append(max(load.served(process) for process in pair.processes))
            assert [process.process.poll() for process in pair.processes] == [None, None]
        database(cluster, "stop")
        while any(process.is_ready() for process in pair.processes):
            time.sleep(0.1)
        database(cluster, "restart")  # as it was started before
        for process in pair.processes:
            load.served(process)
            process.until_ready()
    with capsys.disabled():
        print(f"\n{RESTARTS} restarts of the database: nobody served for {max(taken):.2f} s at most")
    assert max(taken) < 10


def database(cluster: dict[str, str], do: str) -> None:
    """At once, as in a crash: what was under way is cut off, and its log is read when it starts again."""
    (tool,) = {*Path("/usr/lib/postgresql").glob("*/bin/pg_ctl")}
    user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    data = cluster["UNFOG_POSTGRES_DATA"]
    command = [*user, str(tool), "-D", data, "-m", "immediate", "-w", do]
    subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL)
