"""Kill a writer of eight threads at random moments, and hold the file against what it acknowledged."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.live.rows import WRITER, contents


def killed_again_and_again(path: Path, kills: int, chance: random.Random) -> int:
    """How many rows were acknowledged, all of which were found, once, under their numbers."""
    acknowledged: dict[int, str] = {}
    for kill in range(kills):
        for line in lines_until_killed(path, kill, chance.uniform(0.0, 0.25)):
            seq, key = line.split()
            assert int(seq) not in acknowledged
            acknowledged[int(seq)] = key
        rows = contents(path)
        assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
        assert len({(row.problem, row.key) for row in rows}) == len(rows)
        keys = {row.seq: row.key for row in rows}
        assert {seq: keys.get(seq) for seq in acknowledged} == acknowledged
    return len(acknowledged)


def lines_until_killed(path: Path, name: int, after: float) -> list[str]:
    """What a writer said until it was killed, some seconds after its first acknowledgement."""
    command = [sys.executable, str(WRITER), str(path), "threads", str(name)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(after)
        os.kill(process.pid, signal.SIGKILL)
        return (first + process.stdout.read()).decode().splitlines()
