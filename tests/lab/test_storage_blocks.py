"""Blocks: what a run kept is used where it is whole and the run's own, and nothing else ever is."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.each import each
from unfog._io import content_of
from unfog.lab import storage
from unfog.lab.prepare import ExperimentPlan, prepare
from unfog.lab.run import keep
from unfog.lab.spec import parse
from unfog.simulation.engines import numpy as numpy_engine
from unfog.simulation.job import Part, Piece

RUN = "0" * 64


def planned(**changes: object) -> ExperimentPlan:
    run = {"rounds": 4, "trials": 4, "agents": ["naive"], **changes}
    world = {"kind": "gaussian", "dim": 1, "actions": 3}
    return prepare(parse({"problem": world, "run": run, "sweep": {"reward_var": [1.0, 2.0]}}, "small"))


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> ExperimentPlan:
    monkeypatch.setattr(numpy_engine, "BATCH_TRIALS", (2, 2))
    return planned()


def parts_of(plan: ExperimentPlan, task: tuple[Piece, ...]) -> list[Part]:
    work = plan.work
    return [work.engine.run(work.jobs[piece.setting], piece.trials, lambda _: None) for piece in task]


def taken(plan: ExperimentPlan, file: bytes) -> dict[Piece, Part] | None:
    return storage.unpacked(file, RUN, frozenset(plan.work.pieces), plan.work.jobs)


def rehashed(said: Any, numbers: bytes) -> bytes:
    """A block of any content, with the hash that goes with it."""
    content = (said if isinstance(said, bytes) else json.dumps(said).encode()) + b"\n" + numbers
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def test_a_block_gives_back_what_was_put_in(plan: ExperimentPlan) -> None:
    task = plan.work.pieces[1:3]  # of two settings
    parts = parts_of(plan, task)
    parts[0] = {name: values.astype(np.float32) for name, values in parts[0].items()}
    found = taken(plan, storage.packed(RUN, task, parts))
    assert found is not None
    assert list(found) == list(task)
    for piece, part in zip(task, parts, strict=True):
        assert found[piece].keys() == part.keys()
        for name, values in part.items():
            assert found[piece][name].dtype == values.dtype
            np.testing.assert_array_equal(found[piece][name], values)


def test_moments_are_part_of_it(plan: ExperimentPlan) -> None:
    job = plan.work.jobs[0]._replace(curve=np.array([2, 4]))
    piece = plan.work.pieces[0]
    part = plan.work.engine.run(job, piece.trials, lambda _: None)
    found = storage.unpacked(storage.packed(RUN, (piece,), [part]), RUN, {piece}, [job])
    assert found is not None
    assert any(name.startswith("moments_") for name in found[piece])
    assert taken(plan, storage.packed(RUN, (piece,), [part])) is None  # of a job that asks for none


def nan(said: Any, numbers: bytes) -> tuple[Any, bytes]:
    return said, np.float64(np.nan).tobytes() + numbers[8:]


def changed(key: str, change: Callable[[Any], Any]) -> Callable[[Any, bytes], tuple[Any, bytes]]:
    return lambda said, numbers: ({**said, key: change(said[key])}, numbers)


def renamed(arrays: Any) -> Any:
    return [[["other", kind, shape] if i == 0 else [name, kind, shape] for i, (name, kind, shape) in
             enumerate(part)] for part in arrays]  # fmt: skip


WRONG: dict[str, Callable[[Any, bytes], tuple[Any, bytes]]] = {
    "another run": changed("run", lambda _: "1" * 64),
    "no run": changed("run", lambda _: None),
    "other trials": changed("pieces", lambda _: [[0, 1, 3]]),
    "trials beyond the last": changed("pieces", lambda _: [[0, 4, 6]]),
    "trials before the first": changed("pieces", lambda _: [[0, -2, 0]]),
    "fewer trials": changed("pieces", lambda _: [[0, 0, 1]]),
    "no setting of it": changed("pieces", lambda _: [[2, 0, 2]]),
    "a setting counted from the end": changed("pieces", lambda _: [[-1, 0, 2]]),
    "no pieces": lambda said, _: ({**said, "pieces": [], "arrays": []}, b""),
    "a piece twice": lambda said, n: (said | {k: said[k] * 2 for k in ("pieces", "arrays")}, n * 2),
    "a piece too many": changed("pieces", lambda pieces: [*pieces, [0, 2, 4]]),
    "half a piece": changed("pieces", lambda _: [[0, 0]]),
    "pieces of words": changed("pieces", lambda _: [["0", "0", "2"]]),
    "pieces of parts": changed("pieces", lambda _: [[0.5, 0, 2]]),
    "pieces of lists": changed("pieces", lambda _: [[[], 0, 2]]),
    "pieces of nothing": changed("pieces", lambda _: None),
    "another name": changed("arrays", renamed),
    "a name twice": changed("arrays", lambda arrays: [[*arrays[0], arrays[0][0]]]),
    "a name too few": changed("arrays", lambda arrays: [arrays[0][1:]]),
    "another shape": changed("arrays", lambda a: [[[n, k, [s[0], s[2], s[1]]] for n, k, s in a[0]]]),
    "whole numbers": changed("arrays", lambda a: [[[n, "<i8", s] for n, _, s in a[0]]]),
    "objects": changed("arrays", lambda a: [[[n, "O", s] for n, _, s in a[0]]]),
    "no type": changed("arrays", lambda a: [[[n, None, s] for n, _, s in a[0]]]),
    "half the numbers": changed("arrays", lambda a: [[[n, "<f4", s] for n, _, s in a[0]]]),
    "no number": nan,
    "numbers missing": lambda said, numbers: (said, numbers[:-8]),
    "numbers left over": lambda said, numbers: (said, numbers + bytes(8)),
    "a list": lambda said, numbers: ([said], numbers),
    "nothing said": lambda _, numbers: (b"", numbers),
    "no JSON": lambda _, numbers: (b"{", numbers),
    "JSON without a floor": lambda _, numbers: (b"[" * 100_000, numbers),
}  # fmt: skip


@each("case", WRONG)
def test_a_block_of_wrong_content_is_not_used_though_its_hash_is_right(
    case: str, plan: ExperimentPlan
) -> None:
    task = plan.work.pieces[:1]
    file = storage.packed(RUN, task, parts_of(plan, task))
    _, words, numbers = file.split(b"\n", 2)
    said = json.loads(words)
    assert rehashed(said, numbers) == file
    assert taken(plan, file) is not None
    assert taken(plan, rehashed(*WRONG[case](said, numbers))) is None


def test_no_byte_of_a_block_can_change(plan: ExperimentPlan) -> None:
    task = plan.work.pieces[:1]
    file = storage.packed(RUN, task, parts_of(plan, task))
    for position in range(0, len(file), 3):
        hurt = bytearray(file)
        hurt[position] ^= 1 << position % 8
        assert taken(plan, bytes(hurt)) is None
    assert taken(plan, b"") is None


def stopped(plan: ExperimentPlan, target: Path, saved: int) -> Path:
    """The unfinished folder of a run that stopped after so many blocks."""

    def progress(done: int, total: int) -> None:
        if len(list(target.with_name(target.name + ".partial").glob("block-*"))) >= saved:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        keep(plan, target, progress=progress)
    return target.with_name(target.name + ".partial")


def a_folder(path: Path) -> None:
    path.mkdir()
    (path / "file").write_bytes(b"?")


def huge(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(1 << 40)  # a terabyte of nothing, which takes no room


ODD: dict[str, Callable[[Path], None]] = {
    "a folder": a_folder,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a pipe": lambda path: os.mkfifo(path),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "empty": lambda path: path.touch(),
    "huge": huge,
}


@pytest.mark.parametrize("case", ODD)
def test_whatever_stands_in_the_place_of_a_block_is_removed(
    case: str, plan: ExperimentPlan, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keep(plan, tmp_path / "whole")
    folder = stopped(plan, tmp_path / "run", 2)
    [victim, *_] = sorted(folder.glob("block-*"))
    victim.unlink()
    ODD[case](victim)
    keep(plan, tmp_path / "run")
    for name in ("curves.nc", "run.json", "spec.toml"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert not folder.exists()
    assert victim.name in caplog.text
    assert "is damaged; what it held is played again" in caplog.text


def test_a_block_that_cannot_be_read_is_played_again(
    plan: ExperimentPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = stopped(plan, tmp_path / "run", 2)
    [victim, *_] = sorted(folder.glob("block-*"))

    def failing(path: Path) -> bytes:
        if path == victim:
            raise PermissionError(13, "Permission denied", str(path))
        return content_of(path)

    monkeypatch.setattr(storage, "content_of", failing)
    with storage.claimed(plan, tmp_path / "run", tmp_path) as partial:
        found = dict(partial.blocks(plan.work.jobs))
    assert 0 < len(found) < len(plan.work.pieces)
    assert not victim.exists()


def test_blocks_come_in_the_order_of_their_trials(
    plan: ExperimentPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of their names, where 10 is before 2: moments are pooled in this order, and what is early waits."""
    monkeypatch.setattr("unfog.simulation.job.AIM", 0.0)  # a task for each piece
    plan = planned(trials=24)
    stopped(plan, tmp_path / "run", 14)
    with storage.claimed(plan, tmp_path / "run", tmp_path) as partial:
        found = [piece for piece, _ in partial.blocks(plan.work.jobs)]
    assert found == list(plan.work.pieces[:14])


def test_blocks_of_another_run_are_not_used(plan: ExperimentPlan, tmp_path: Path) -> None:
    other = stopped(planned(seed=1), tmp_path / "other", 2)
    folder = stopped(plan, tmp_path / "run", 1)
    for path in other.glob("block-*"):
        (folder / path.name).write_bytes(path.read_bytes())
    with storage.claimed(plan, tmp_path / "run", tmp_path) as partial:
        assert list(partial.blocks(plan.work.jobs)) == []


def test_a_block_under_two_names_counts_once(plan: ExperimentPlan, tmp_path: Path) -> None:
    folder = stopped(plan, tmp_path / "run", 1)
    [only] = folder.glob("block-*")
    (folder / "block-again").write_bytes(only.read_bytes())
    with storage.claimed(plan, tmp_path / "run", tmp_path) as partial:
        found = [piece for piece, _ in partial.blocks(plan.work.jobs)]
    assert len(found) == len(set(found)) > 0
    assert len(list(folder.glob("block-*"))) == 1
