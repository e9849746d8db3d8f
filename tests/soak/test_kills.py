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

KILLS = 200
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
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def curves(folder: Path) -> str:
    return hashlib.sha256((folder / "curves.nc").read_bytes()).hexdigest()


@pytest.mark.soak
@pytest.mark.parametrize("workers", [1, 2])
def test_hundreds_of_kills(tmp_path: Path, workers: int) -> None:
    (tmp_path / "spec.toml").write_text(SPEC)
    assert start(tmp_path, "whole", workers).wait() == 0
    chance, kills, done = random.Random(workers), 0, 0
    while kills < KILLS // 2:
        out = f"killed{done}"
        process = start(tmp_path, out, workers)
        try:
            process.wait(chance.uniform(0.05, 3.0))
        except subprocess.TimeoutExpired:
            whom = process.pid if chance.random() < 0.5 else -process.pid  # the parent alone, or all of them
            os.kill(whom, signal.SIGKILL) if whom > 0 else os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
        if (tmp_path / out).exists():
            assert curves(tmp_path / out) == curves(tmp_path / "whole")
            done += 1
    time.sleep(2.5)  # workers notice that their parent is gone
    assert start(tmp_path, f"killed{done}", workers).wait() == 0
    assert curves(tmp_path / f"killed{done}") == curves(tmp_path / "whole")
