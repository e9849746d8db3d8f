"""Other processors, as far as this one can play them: `kernels.py [--only NAME] TESTS` runs quick tests.

OpenBLAS has kernels for many processors, NumPy loops with and without AVX-512, and each rounds sums in its
own way. Both are chosen by environment variables when a process starts. What this processor cannot run is
left out: it would end the process.
"""

import argparse
import os
import subprocess
import sys
from importlib import import_module
from typing import Any, NamedTuple

NUMPY: Any = import_module("numpy._core._multiarray_umath")  # of what a processor has, NumPy says only here


class Kernel(NamedTuple):
    """What a process is told, and what the processor must have for it."""

    blas: str  # a kernel of OpenBLAS; empty: the processor's own
    needs: str  # a feature of processors, as NumPy calls it
    avx512: bool = True  # whether NumPy may use it


KERNELS = {
    "haswell": Kernel("Haswell", "AVX2"),
    "skylakex": Kernel("SkylakeX", "AVX512F"),
    "zen": Kernel("Zen", "AVX2"),
    "sandybridge": Kernel("Sandybridge", "AVX"),
    "no-avx512": Kernel("", "AVX512F", avx512=False),
    "haswell-no-avx512": Kernel("Haswell", "AVX2", avx512=False),
}
EACH = tuple(KERNELS)[:-1]


def available(name: str) -> bool:
    """Whether this processor can play it."""
    return bool(NUMPY.__cpu_features__.get(KERNELS[name].needs))


def environment(name: str) -> dict[str, str]:
    """That of this process, and what makes another play this kernel."""
    kernel, found = KERNELS[name], dict(os.environ)
    if kernel.blas:
        found["OPENBLAS_CORETYPE"] = kernel.blas
    if not kernel.avx512:  # by the names that this NumPy has been built with: it warns of others
        off = [one for one in NUMPY.__cpu_dispatch__ if one.startswith("AVX512") or one == "X86_V4"]
        found["NPY_DISABLE_CPU_FEATURES"] = " ".join(off)
    return found


def main() -> int:
    """Run the tests under every kernel that there is; how many of these runs failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=KERNELS, action="append")
    parser.add_argument("tests", nargs="+")
    told, failed = parser.parse_args(), 0
    for name in told.only or EACH:
        if not available(name):
            print(f"{name}: left out, this processor has no {KERNELS[name].needs}", flush=True)
            continue
        print(f"{name}: {KERNELS[name]}", flush=True)
        chosen = ["-n", "auto", "--dist", "loadfile", "-m", "not slow and not soak"]
        command = [sys.executable, "-m", "pytest", *chosen, *told.tests]
        failed += subprocess.run(command, env=environment(name)).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
