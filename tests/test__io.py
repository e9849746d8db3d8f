"""Files that a user names: ordinary ones are read, up to their bounds, and all else is refused unread."""

import os
from pathlib import Path

import pytest

from unfog import _io
from unfog.validation import InputError


def test_toml_up_to_its_bounds(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(b"a = 1\n#".ljust(_io.MOST_BYTES, b"x"))
    assert _io.toml("x", path) == {"a": 1}
    path.write_bytes(b"a = 1\n#".ljust(_io.MOST_BYTES + 1, b"x"))
    with pytest.raises(
        InputError, match=r"x.toml' is too large; allowed: a TOML file of at most 1,000,000 bytes"
    ):
        _io.toml("x", path)


def test_toml_that_is_nested_as_deep_as_nobody_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text("a = " + "[" * 5000 + "]" * 5000)
    with pytest.raises(InputError, match=r"x.toml' is not TOML \(.*recursion.*\); allowed: a TOML file$"):
        _io.toml("x", path)


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    """A pipe without a writer would keep us waiting, and some devices never end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    kinds = (pipe, "no ordinary file"), ("/dev/zero", "no ordinary file"), (tmp_path, "a folder")
    for path, kind in kinds:
        with pytest.raises(InputError, match=f"' is {kind}; allowed: y"):
            _io.content("x", path, "y")
    for name in ("a\0b", "a" * 5000):
        with pytest.raises(InputError, match="cannot be read"):
            _io.content("x", name, "y")
        assert not _io.is_file(name)
        assert not _io.is_folder(name)
