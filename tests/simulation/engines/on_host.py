"""kernel.cu for the processor: the same text, compiled by the C++ compiler of this machine."""

import ctypes
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from unfog.agents.agent import Agent
from unfog.simulation.engines import cuda as cuda_engine
from unfog.worlds.synthetic import GaussianProblem

COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
PRELUDE = """
#include <cmath>
#include <algorithm>
typedef {real} real;
#define FN static inline
#define TABLE static const real
#define SQRT std::sqrt
#define RSQRT(x) (1 / std::sqrt(x))
#define LOG std::log
#define LOG1P std::log1p
#define EXP std::exp
#define ROUGH_LOG std::log
#define IN_SHARED 0
#define THREADS 1
#define MAX std::max<real>
static inline void SINCOS(real turns, real *s, real *c) {{
  *s = std::sin((real)(2 * M_PI) * turns), *c = std::cos((real)(2 * M_PI) * turns);
}}
"""
ENTRY = """
extern "C" void play(Arguments g, int n, int rounds, int first) {
  for (int trial = 0; trial < n; ++trial) one_trial(g, trial, n, rounds, first, 0, 0);
}
"""


def source(
    problem: GaussianProblem,
    agent: Agent,
    decompose: bool,
    given: bool,
    precision: str,
    block: cuda_engine.Block,
) -> str:
    """The text of the kernel, with names that a C++ compiler for the processor knows."""
    real = "float" if precision == "float32" else "double"
    told = cuda_engine.numbers(problem, agent, decompose, given)
    return "\n".join([PRELUDE.format(real=real), told, cuda_engine.kernel(), ENTRY])


class Kernel:
    """Launched as on a GPU."""

    def __init__(self, library: Path, pointers: int = 15) -> None:
        self._structure = type(
            "Arguments",
            (ctypes.Structure,),
            {"_fields_": [(f"p{i}", ctypes.c_void_p) for i in range(pointers)]},
        )
        self._play = ctypes.CDLL(str(library)).play
        self._play.argtypes = [self._structure, *[ctypes.c_int] * 3]

    def __call__(self, pointers: Sequence[int], trials: int, rounds: int, first: int) -> None:
        self._play(self._structure(*pointers), trials, rounds, first)


@lru_cache(maxsize=64)
def compiled(text: str, block: cuda_engine.Block) -> Kernel:
    """The kernel of a text."""
    folder = Path(tempfile.gettempdir()) / "unfog-kernels"
    folder.mkdir(exist_ok=True)
    name = folder / hashlib.sha256(text.encode()).hexdigest()
    if not name.with_suffix(".so").exists():
        name.with_suffix(".cpp").write_text(text)
        flags = ["-O1", "-w", "-shared", "-fPIC", "-x", "c++", str(name.with_suffix(".cpp"))]
        subprocess.run([str(COMPILER), *flags, "-o", str(name.with_suffix(".so"))], check=True)
    return Kernel(name.with_suffix(".so"))


def instead_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the engine play here."""
    from unfog.simulation.engines import cuda

    here: Any = {"compiled": compiled, "most_shared": lambda: 0}
    monkeypatch.setattr(cuda, "on_host", lambda: True)
    monkeypatch.setattr(cuda, "kernel_source", source)
    for name, value in here.items():
        monkeypatch.setattr(cuda, name, value)
