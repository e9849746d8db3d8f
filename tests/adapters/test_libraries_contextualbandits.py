"""contextualbandits behind a denoiser, in the environment of the benchmark's peers if not in ours."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import unfog

ROOT = Path(__file__).parents[2]
PEERS = ROOT / "benchmarks" / "out" / "peers-venv" / "bin" / "python"
SCRIPT = Path(__file__).parent / "with_contextualbandits.py"


@pytest.fixture
def python() -> str:
    if find_spec("contextualbandits") is not None:
        return sys.executable
    if not PEERS.exists():
        pytest.skip("contextualbandits is not installed: benchmarks/peers/setup.sh makes its environment")
    return str(PEERS)


@pytest.mark.slow
def test_every_verb_is_given_denoised_contexts(python: str) -> None:
    where = {**os.environ, "PYTHONPATH": str(Path(unfog.__file__).parents[1])}
    done = subprocess.run([python, str(SCRIPT)], env=where, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
