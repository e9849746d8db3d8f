"""Keys: made, kept, revoked, and what is damaged is never taken for a store without keys."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from unfog.live.errors import NotFoundError
from unfog.serve.auth import Key, KeysError, find_key, made
from unfog.serve.key_storage import KeyFile
from unfog.validation import InputError


def ring(tmp_path: Path) -> KeyFile:
    return KeyFile(tmp_path / "walks.unfog")


def added(kept: KeyFile, *scopes: str, problems: tuple[str, ...] = ()) -> tuple[Key, str]:
    key, text = made(scopes or ("admin",), problems, "a note", 5.0)
    kept.add(key)
    return key, text


def test_a_key_is_found_again_and_its_secret_is_kept_nowhere(tmp_path: Path) -> None:
    kept = ring(tmp_path)
    key, text = added(kept, "report", "decide", problems=("walks", "walks"))
    assert kept.load() == {key.id: key}
    assert (key.scopes, key.problems, key.note, key.created) == (
        ("decide", "report"),
        ("walks",),
        "a note",
        5.0,
    )
    assert find_key(kept.load(), text) == key
    secret = text.split("_", 2)[2]
    assert len(secret) == 43  # 256 bits
    assert secret not in kept.path.read_text()
    assert stat.S_IMODE(kept.path.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["walks.unfog-keys"]


def test_what_is_not_a_key_is_none(tmp_path: Path) -> None:
    kept = ring(tmp_path)
    (key, text), (_, other) = added(kept), added(kept)
    wrong = text[:-1] + ("A" if text[-1] != "A" else "B")
    mixed = f"unfog_{key.id}_{other.split('_', 2)[2]}"
    cut = ("", "_", "unfog", f"unfog_{key.id}", f"unfog_{key.id}_")
    longer = (text + "x", f"{text} ", text + "\0", text * 9, "é" * 300)
    for word in (*cut, *longer, wrong, mixed, text.upper(), text.replace("unfog", "fog")):
        assert find_key(kept.load(), word) is None


def test_a_revoked_key_is_none_and_stays_in_the_list(tmp_path: Path) -> None:
    kept = ring(tmp_path)
    (key, text), (left, known) = added(kept), added(kept)
    kept.revoke(key.id, 9.0)
    assert find_key(kept.load(), text) is None
    assert find_key(kept.load(), known) == left
    assert kept.load()[key.id] == key._replace(digest="", revoked=9.0)
    for name in (key.id, "nobody"):
        with pytest.raises(NotFoundError, match=rf"^id: '{name}'; allowed: {left.id}$"):
            kept.revoke(name, 9.0)
    with pytest.raises(NotFoundError, match="allowed: none: there are no keys"):
        ring(tmp_path / "..").revoke("x", 9.0)


def test_keys_that_come_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(lambda _: added(ring(tmp_path))[0].id, range(24)))
    assert sorted(ring(tmp_path).load()) == sorted(keys)


@pytest.mark.parametrize(
    ("scopes", "problems", "note", "field"),
    [
        ((), (), "", "scope"),
        (("all",), (), "", "scope"),
        (("read",), ("",), "", "problem"),
        (("read",), (), "a\nb", "note"),
        (("read",), (), "x" * 201, "note"),
    ],
)
def test_a_key_for_nothing_is_refused(
    scopes: tuple[str, ...], problems: tuple[str, ...], note: str, field: str
) -> None:
    with pytest.raises(InputError) as refused:
        made(scopes, problems, note, 0.0)
    assert refused.value.field == field


@pytest.mark.slow
def test_damage_is_seen_at_every_byte(tmp_path: Path) -> None:
    """Cut anywhere, or with a bit turned: refused, or the keys are as they were."""
    kept = ring(tmp_path)
    key, _ = added(kept, "read", problems=("walks",))
    whole = kept.path.read_bytes()
    for i in range(len(whole)):
        kept.path.write_bytes(whole[:i])
        with pytest.raises(KeysError, match=r"^walks\.unfog-keys is damaged"):
            kept.load()
    for i in range(len(whole)):
        kept.path.write_bytes(whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :])
        try:
            assert kept.load() == {key.id: key}
        except KeysError:
            continue


def test_a_newer_version_is_refused_and_not_overwritten(tmp_path: Path) -> None:
    kept = ring(tmp_path)
    kept.path.write_text('{"version": 2, "people": []}')
    with pytest.raises(KeysError, match="written by a newer version of unfog"):
        kept.load()
    with pytest.raises(KeysError, match="newer"):
        added(kept)
    assert kept.path.read_text() == '{"version": 2, "people": []}'


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(KeysError, match="No such file or directory"):
        added(ring(tmp_path / "none"))


def test_a_failed_write_leaves_the_old_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = ring(tmp_path)
    key, _ = added(kept)

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, "replace", fails)
        with pytest.raises(KeysError, match="No space left"):
            added(kept)
    assert list(kept.load()) == [key.id]
    assert [one.name for one in tmp_path.iterdir()] == ["walks.unfog-keys"]
