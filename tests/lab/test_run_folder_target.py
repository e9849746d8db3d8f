"""Folders that a user asks for: what cannot become one is refused before anything long is begun."""

import os
from pathlib import Path

import pytest

from tests.lab.test_storage_blocks import planned
from unfog.lab import storage
from unfog.lab.run_folder import UNFINISHED, made_folder, read, run_folder
from unfog.validation import InputError


def test_no_run_can_take_the_name_of_an_unfinished_one(tmp_path: Path) -> None:
    target = tmp_path / "run"
    folder = storage.Partial(target, planned()).folder
    assert folder == tmp_path / f"run{UNFINISHED}"
    assert run_folder(str(target)) == target
    with pytest.raises(InputError, match=r"^out: .*; allowed: another name: folders that end in \.partial"):
        run_folder(folder)
    folder.mkdir()
    with pytest.raises(InputError, match=r"^run: .* is unfinished; allowed: .* goes on with it$"):
        read(folder)


def test_a_folder_below_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert made_folder("out", tmp_path / "a/b") == tmp_path / "a/b"
    assert os.listdir(tmp_path) == ["file"]  # asking makes nothing
    for path in (tmp_path / "file", tmp_path / "file/below"):
        with pytest.raises(InputError, match=r"^out: .*; allowed: a folder that can be made and written to$"):
            made_folder("out", path)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no folder is at hand that nobody can write to")
def test_a_folder_that_nobody_can_write_to_is_refused_to_root_too() -> None:
    with pytest.raises(InputError, match=r"^out: '/proc' cannot be made or written to \("):
        made_folder("out", "/proc")
