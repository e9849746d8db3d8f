"""Thousands of bad files and command lines: each works, or is refused in one line."""

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.bad import case
from tests.cli.bad.specs import BASELINES, PLAIN, RECORDED

CASES, PROCESSES, SEED = 2500, 25, 21
NAMES = [*PLAIN, *BASELINES, *RECORDED]


@pytest.mark.soak
def test_thousands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    codes, folder = [], tmp_path / "here"
    for number in range(CASES):
        folder.mkdir()
        monkeypatch.chdir(folder)
        one = case(random.Random(f"{SEED} {number}"), NAMES)
        one.lay(folder)
        codes.append(one.check(capsys))
        shutil.rmtree(folder)
    assert codes.count(2) > CASES / 2


@pytest.mark.soak
@pytest.mark.parametrize("number", range(PROCESSES))
def test_as_processes(number: int, tmp_path: Path) -> None:
    one = case(random.Random(f"{SEED} process {number}"), NAMES)
    one.lay(tmp_path)
    words = [word for word in one.words if "\x00" not in word]  # which no system passes on
    code = "import sys; from unfog.cli import main; main(sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=tmp_path, capture_output=True, timeout=120
    )
    assert done.returncode in (0, 2), done.stderr
    assert b"Traceback" not in done.stderr
    assert done.returncode == 0 or done.stderr.count(b"\n") == 1
