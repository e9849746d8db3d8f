"""A run that is killed again and again ends with the bits of one that never was."""

import hashlib
import multiprocessing
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from unfog.cli import main

KILLS = {1: 40, 2: 210}  # by workers
SPEC = """
[problem]
kind = "gaussian"
dim = 2
actions = 5
missing = 0.2
[run]
rounds = 64
trials = 400
seed = 4
agents = ["alg1", "gaps", "unfog-oracle"]
"""


def command(folder: Path, out: str, workers: int) -> None:
    """`unfog run`, in a process and a group of its own."""
    os.setsid()
    os.chdir(folder)
    for handle, name in ((1, os.devnull), (2, "said")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), handle)
    main(["run", "spec.toml", "--out", out, "--workers", str(workers)])


def start(folder: Path, out: str, workers: int) -> Any:
    """Forked off a process that has imported everything, so that kills are many and meet other moments."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["unfog.cli", "unfog.lab.run", "unfog.lab.report", "tests.soak.test_kills"]
    )
    process = context.Process(target=command, args=(folder, out, workers))
    process.start()
    return process


def content(folder: Path) -> dict[str, str]:
    names = ("curves.nc", "run.json", "spec.toml")
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


def workers_of(parent: int) -> list[int]:
    """The worker processes of a run."""
    try:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        commands = {int(pid): Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children}
    except OSError:  # gone meanwhile
        return []
    return [pid for pid, command in commands.items() if b"spawn_main" in command]


def wait_for_a_moment(process: Any, partial: Path, chance: random.Random) -> bool:
    """Any moment from its start or, for most, from when it keeps something; whether it still runs then."""
    before, until = set(partial.glob("*")), time.monotonic() + 60
    while chance.random() < 0.999 and process.is_alive() and time.monotonic() < until:
        if set(partial.glob("*")) != before:
            break
        time.sleep(0.005)
    process.join(chance.uniform(0.0, 0.8))
    return process.is_alive()


def kill(process: Any, whom: str, chance: random.Random) -> bool:
    """The parent alone, all of its group, or one worker, of whose death the parent says a word and leaves."""
    if whom == "parent":
        os.kill(process.pid, signal.SIGKILL)
    elif whom == "all":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        found = workers_of(process.pid)
        if not found:
            process.kill()
            process.join()
            return False
        os.kill(chance.choice(found), signal.SIGKILL)
    process.join(120)
    assert not process.is_alive()
    return True


def finish(folder: Path, out: str, workers: int) -> None:
    process = start(folder, out, workers)
    process.join()
    assert process.exitcode == 0, (folder / "said").read_text()


@pytest.mark.soak
@pytest.mark.parametrize("workers", [1, 2])
def test_hundreds_of_kills(tmp_path: Path, workers: int) -> None:
    (tmp_path / "spec.toml").write_text(SPEC)
    finish(tmp_path, "whole", workers)
    chance, kills, done, died = random.Random(workers), 0, 0, 0
    while kills < KILLS[workers]:
        out = f"killed{done}"
        process = start(tmp_path, out, workers)
        if wait_for_a_moment(process, tmp_path / f"{out}.partial", chance):
            whom = chance.choice(["parent", "all", "worker"][: 1 + workers])
            kills += kill(process, whom, chance)
            if whom == "worker" and process.exitcode == 1:
                assert (
                    (tmp_path / "said").read_bytes().splitlines()[-1].startswith(b"unfog: a worker process")
                )
                died += 1
        if (tmp_path / out).exists():
            assert content(tmp_path / out) == content(tmp_path / "whole")
            done += 1
    time.sleep(2.5)  # workers notice that their parent is gone
    finish(tmp_path, f"killed{done}", workers)
    assert content(tmp_path / f"killed{done}") == content(tmp_path / "whole")
    assert not list(tmp_path.glob(f"killed{done}.partial"))
    print(f"{kills} kills, {died} of them of workers, {done + 1} runs finished")
