"""Kept kernels: found again by another process, and never run with one wrong bit."""

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from unfog.simulation.engines.numba import compile as compiling


def made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A small kernel, which is kept in this folder, as a process has it that starts now."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder))

    def doubled(x: Any) -> Any:
        return 2 * x + 1

    return compiling.compiled(doubled)


def kept(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.nbk"))


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
    assert len(kept(tmp_path)) == 2
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".nbk"]


@pytest.mark.slow
def test_no_damage_is_loaded_and_none_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path, monkeypatch)(3.0)
    (path,), chance = kept(tmp_path), random.Random(5)
    whole = path.read_bytes()
    damages = [b"", whole[:10], whole[:-1], whole + b"x", b"\0" * len(whole)]
    for _ in range(40):
        at = chance.randrange(len(whole))
        damages.append(whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1 :])
    for damage in damages:
        path.write_bytes(damage)
        kernel = made(tmp_path, monkeypatch)
        assert kernel(3.0) == 7.0
        assert hits(kernel) == 0
        assert hits(_run(made(tmp_path, monkeypatch))) == 1  # it was replaced


def _run(kernel: Any) -> Any:
    kernel(3.0)
    return kernel


def test_what_other_sources_made_is_not_used_and_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, monkeypatch)(3.0)
    (old,) = kept(tmp_path)
    monkeypatch.setattr(compiling, "sources", lambda: "others")
    kernel = made(tmp_path, monkeypatch)
    assert hits(_run(kernel)) == 0
    assert kept(tmp_path) != [old]
    assert len(kept(tmp_path)) == 1


def test_a_file_in_the_place_of_another_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = made(tmp_path, monkeypatch)
    kernel(3.0)
    (first,) = kept(tmp_path)
    kernel(3)
    (second,) = set(kept(tmp_path)) - {first}
    second.write_bytes(first.read_bytes())
    again = made(tmp_path, monkeypatch)
    assert again(3) == 7
    assert isinstance(again(3), int | np.integer)
    assert hits(again) == 0


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
