"""A run that is killed again and again ends with the bits of one that never was."""

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

KILLS = {1: 60, 2: 240}  # by workers
SPEC = """
[problem]
kind = "gaussian"
dim = 2
actions = 5
missing = 0.2
[run]
rounds = 128
trials = 1500
seed = 4
agents = ["alg1", "gaps", "unfog-oracle"]
"""


def start(folder: Path, out: str, workers: int) -> subprocess.Popen[bytes]:
    program = "from unfog.cli import main; main()"
    told = ["run", "spec.toml", "--out", out, "--workers", str(workers)]
    command = [sys.executable, "-c", program, *told]
    with open(folder / "said", "wb") as said:
        return subprocess.Popen(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True
        )


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


def wait_for_a_moment(process: subprocess.Popen[bytes], partial: Path, chance: random.Random) -> bool:
    """Until any moment of the run: from its start or, for most, from when it keeps something. Whether it runs."""
    before, until = set(partial.glob("*")), time.monotonic() + 60
    while chance.random() < 0.999 and process.poll() is None and time.monotonic() < until:
        if set(partial.glob("*")) != before:
            break
        time.sleep(0.005)
    try:
        process.wait(chance.uniform(0.0, 0.8))
    except subprocess.TimeoutExpired:
        return True
    return False


def kill(process: subprocess.Popen[bytes], whom: str, chance: random.Random) -> bool:
    """The parent alone, all of its group, or one worker, of whose death the parent says a word and leaves."""
    if whom == "parent":
        os.kill(process.pid, signal.SIGKILL)
    elif whom == "all":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        found = workers_of(process.pid)
        if not found:
            process.kill()
            process.wait()
            return False
        os.kill(chance.choice(found), signal.SIGKILL)
    process.wait(120)
    return True


@pytest.mark.soak
@pytest.mark.parametrize("workers", [1, 2])
def test_hundreds_of_kills(tmp_path: Path, workers: int) -> None:
    (tmp_path / "spec.toml").write_text(SPEC)
    assert start(tmp_path, "whole", workers).wait() == 0
    chance, kills, done, died = random.Random(workers), 0, 0, 0
    while kills < KILLS[workers]:
        out = f"killed{done}"
        process = start(tmp_path, out, workers)
        if wait_for_a_moment(process, tmp_path / f"{out}.partial", chance):
            whom = chance.choice(["parent", "all", "worker"][: 1 + workers])
            kills += kill(process, whom, chance)
            if whom == "worker" and process.returncode == 1:
                assert (
                    (tmp_path / "said").read_bytes().splitlines()[-1].startswith(b"unfog: a worker process")
                )
                died += 1
        if (tmp_path / out).exists():
            assert content(tmp_path / out) == content(tmp_path / "whole")
            done += 1
    time.sleep(2.5)  # workers notice that their parent is gone
    assert start(tmp_path, f"killed{done}", workers).wait() == 0
    assert content(tmp_path / f"killed{done}") == content(tmp_path / "whole")
    assert not list(tmp_path.glob(f"killed{done}.partial"))
    print(f"{kills} kills, {died} of them of workers that were heard of, {done + 1} runs")
