"""Runs on Dask and Ray whose workers, driver or head are killed end with the bits of one that never was."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.simulation.executors import clusters

KILLS = {"worker": 100, "driver": 100, "head": 100}
LONGEST = 4.0  # seconds between kills


def workers_of(on: str, process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Those that play tasks: Dask's are spawned by us, Ray's name what they do."""
    wanted = "spawn_main" if on == "dask" else "ray::"
    return [one for one in clusters.family(process) if wanted in " ".join(_words(one))]


def head_of(on: str, process: subprocess.Popen[str]) -> list[psutil.Process]:
    """What the cluster itself hangs on; Dask's scheduler lives in the driver when it is local."""
    if on == "dask":
        return [psutil.Process(process.pid)]
    return [one for one in clusters.family(process) if one.name() in ("raylet", "gcs_server")]


def _words(process: psutil.Process) -> list[str]:
    try:
        found: list[str] = process.cmdline()
    except psutil.Error:
        return []
    return found


def driver_of(on: str, process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The command itself."""
    return [psutil.Process(process.pid)]


VICTIMS = {"worker": workers_of, "driver": driver_of, "head": head_of}


def kill(whom: str, on: str, process: subprocess.Popen[str], chance: random.Random) -> bool:
    """One of them, if there is any."""
    try:
        victims = VICTIMS[whom](on, process)
        if not victims:
            return False
        chance.choice(victims).kill()
    except psutil.NoSuchProcess:
        return False
    return True


@pytest.mark.soak
@pytest.mark.parametrize("on", ["dask", "ray"])
@pytest.mark.parametrize("whom", KILLS)
def test_hundreds_of_kills(tmp_path: Path, on: str, whom: str) -> None:
    clusters.finish(tmp_path, "serial", "whole")
    right, chance, kills, done = clusters.digest(tmp_path / "whole"), random.Random(on + whom), 0, 0
    while kills < KILLS[whom]:
        out = f"killed{done}"
        process = clusters.start(tmp_path, on, out)
        while kills < KILLS[whom] and process.poll() is None:
            time.sleep(chance.uniform(0.05, LONGEST))
            if whom == "worker" and not any(tmp_path.glob(f"{out}.partial/block-*")):
                continue  # one that dies before any is up only shows that none came up
            kills += kill(whom, on, process, chance)
        _, err = process.communicate(timeout=300)
        assert process.returncode in (0, 1, -signal.SIGKILL), err
        starting = on == "ray" and whom == "head" and not err  # Ray ends the process itself, without a word
        assert process.returncode != 1 or starting or "the same command goes on" in err, err
        if (tmp_path / out).exists():
            assert clusters.digest(tmp_path / out) == right
            done += 1
        print(f"{on} {whom}: {kills} kills, {done} runs", file=sys.stderr, flush=True)
    clusters.finish(tmp_path, on, f"killed{done}")
    assert clusters.digest(tmp_path / f"killed{done}") == right
