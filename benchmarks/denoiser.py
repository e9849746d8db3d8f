"""How long the scikit-learn transformer takes for many rows and for one: milliseconds, one core.

python benchmarks/denoiser.py [--rows 100000] [--dim 5] [--repeats 9]
"""

import os

os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import argparse
import platform
import time
from collections.abc import Callable

import numpy as np
import sklearn

from unfog.adapters.sklearn import Denoiser


def timed(work: Callable[[], object], repeats: int) -> list[float]:
    """Milliseconds of each repeat, in order of size, after one that does not count."""
    work()
    found = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        found.append(1000 * (time.perf_counter() - started))
    return sorted(found)


def cases(rows: int, dim: int) -> dict[str, Callable[[], object]]:
    """What is timed, by name."""
    source = np.random.default_rng(0)
    root = source.normal(size=(dim, dim))
    noise = 0.5 * root @ root.T + np.eye(dim)
    errors = source.multivariate_normal(np.zeros(dim), noise, rows)
    noisy = 3 + source.normal(size=(rows, dim)) @ root.T + errors
    gaps = np.where(source.random(noisy.shape) < 0.2, np.nan, noisy)
    sizes, devices = source.random(noisy.shape), source.integers(0, 20, rows)
    many = source.integers(0, max(1, rows // 20), rows)
    plain, draws = Denoiser(noise).fit(noisy), Denoiser(noise, output="draws", random_state=0).fit(noisy)
    apart, each = Denoiser(noise).fit(noisy, groups=devices), Denoiser(noise).fit(gaps, groups=many)
    some = Denoiser(noise).fit(noisy[:2000], groups=devices[:2000])
    stream = Denoiser(noise, np.eye(dim), np.full(dim, 3.0), root @ root.T + np.eye(dim))
    return {
        "transform, one noise": lambda: plain.transform(noisy),
        "  a fifth lost": lambda: plain.transform(gaps),
        "  20 devices": lambda: apart.transform(noisy, groups=devices),
        "  many devices, a fifth lost": lambda: each.transform(gaps, groups=many),
        "  a noise a row": lambda: plain.transform(noisy, noise_cov=sizes),
        "  5 draws": lambda: draws.transform(noisy),
        "fit, one noise": lambda: Denoiser(noise).fit(noisy),
        "fit, many devices, a fifth lost": lambda: Denoiser(noise).fit(gaps, groups=many),
        "transform_one, law told": lambda: stream.transform_one(noisy[0]),
        "transform_one, 20 devices": lambda: some.transform_one(noisy[0], group=3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=9)
    given = parser.parse_args()
    print(f"NumPy {np.__version__}, scikit-learn {sklearn.__version__}, Python {platform.python_version()}")
    print(f"one core, {given.rows:,} x {given.dim}, {given.repeats} repeats")
    print(f"{'':34}{'ms (median)':>14}{'min..max':>20}")
    for name, work in cases(given.rows, given.dim).items():
        found = timed(work, given.repeats)
        spread = f"{found[0]:.2f}..{found[-1]:.2f}"
        print(f"{name:34}{found[len(found) // 2]:>14.2f}{spread:>20}", flush=True)


if __name__ == "__main__":
    main()
