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


@pytest.mark.parametrize(
    "text", ["a = {}1{}", "a.{}a = 1", '"a" . {}a = 1', "[a.{}a]\nb = 1", "x = 1\n'a'.{}a = 1"]
)
def test_toml_that_is_nested(text: str, tmp_path: Path) -> None:
    def nested(depth: int) -> str:
        return text.format("[" * depth, "]" * depth) if text.endswith("}") else text.format("a." * depth)

    path = tmp_path / "x.toml"
    path.write_text(nested(_io.DEEPEST - 4))
    assert _io.toml("x", path)
    for depth in (_io.DEEPEST + 1, 5000, 200_000):
        path.write_text(nested(depth))
        with pytest.raises(InputError, match=r"x.toml' is nested too deeply; allowed: .*, at most 20 deep"):
            _io.toml("x", path)


def test_dots_elsewhere_are_no_nesting(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text('a = "' + "see e.g. 1.5. " * 50 + '"\nb = [' + "1.5, " * 50 + "]\n# ......" + "." * 99)
    assert _io.toml("x", path)["b"] == [1.5] * 50


@pytest.mark.parametrize(
    "text", ['a = "{}"', "a = '{}'", "a = 1  # {}", 'a = """\n{}"""""', "a = '''\n{}'''", 'a = "\\"{}"']
)
def test_dotted_words_in_strings_and_comments_are_no_keys(text: str, tmp_path: Path) -> None:
    path, dotted = tmp_path / "x.toml", ".".join(map(str, range(30)))
    path.write_text(text.format(dotted))
    assert "a" in _io.toml("x", path)
    path.write_text(f"{text.format(dotted)}\n{dotted} = 1")
    with pytest.raises(InputError, match="is nested too deeply"):
        _io.toml("x", path)


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    """A pipe without a writer would keep us waiting, and some devices never end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, kind in ((pipe, "a pipe"), ("/dev/zero", "a device"), (tmp_path, "a folder")):
        with pytest.raises(InputError, match=f"' is {kind}; allowed: y"):
            _io.content("x", path, "y")
    for name in ("a\0b", "a" * 5000):
        with pytest.raises(InputError, match="cannot be read"):
            _io.content("x", name, "y")
        assert not _io.is_file(name)
        assert not _io.is_folder(name)


def test_a_pipe_that_was_a_file_a_moment_ago(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(_io, "check", lambda *_: None)
    assert _io.content("x", tmp_path / "pipe", "y") == b""
