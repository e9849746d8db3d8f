"""Kept kernels: found again by another process, as long as the sources and the sizes are the same."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import pytest

from unfog.simulation.engines.numba import compile as compiling


def made(folder: Path, monkeypatch: pytest.MonkeyPatch, size: int = 2) -> Any:
    """A small kernel, which is kept in this folder, as a process has it that starts now."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder))

    def multiplied(x: Any) -> Any:
        return size * x + 1

    return compiling.compiled(multiplied)


def programs(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.nbc"))


def hits(kernel: Any) -> int:
    return sum(kernel.stats.cache_hits.values())


def test_a_kernel_is_kept_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = made(tmp_path, monkeypatch)
    assert first(3.0) == 7.0
    assert hits(first) == 0
    again = made(tmp_path, monkeypatch)
    assert again(3.0) == 7.0
    assert hits(again) == 1
    assert again(3) == 7  # another signature, another file
    assert len(programs(tmp_path)) == 2


def test_each_size_has_files_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (2, 5):
        assert made(tmp_path, monkeypatch, size)(3.0) == size * 3.0 + 1
    assert len({path.name.partition(".1.")[0] for path in programs(tmp_path)}) == 2
    assert len(list(tmp_path.rglob("*.nbi"))) == 2
    again = made(tmp_path, monkeypatch, 5)
    assert again(3.0) == 16.0
    assert hits(again) == 1


def test_what_other_sources_made_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path, monkeypatch)(3.0)
    monkeypatch.setattr(compiling, "sources", lambda: "others")
    kernel = made(tmp_path, monkeypatch)
    assert kernel(3.0) == 7.0
    assert hits(kernel) == 0
    assert len(programs(tmp_path)) == 1  # it was replaced


@pytest.mark.slow
def test_another_process_finds_it(tmp_path: Path) -> None:
    code = (
        "import tests.simulation.engines.numba.test_compile as t, pytest, pathlib, sys\n"
        "k = t.made(pathlib.Path(sys.argv[1]), pytest.MonkeyPatch()); k(3.0); print(t.hits(k))"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
        )
        for _ in range(2)
    ]
    assert [done.stdout.strip() for done in said] == ["0", "1"]
