"""Keys in a database do as those in a file do, and all who share it see the same."""

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from unfog.live.errors import NotFoundError
from unfog.serve.auth import Key, Keyed, KeysError, LocalhostOnly, find_key, made
from unfog.serve.key_storage import KeyTable, hide_password, ring_of
from unfog.serve.server import make_auth
from unfog.validation import InputError


def added(ring: KeyTable, *scopes: str, problems: tuple[str, ...] = ()) -> tuple[Key, str]:
    key, text = made(scopes or ("admin",), problems, "a note", 5.0)
    ring.add(key)
    return key, text


def test_keys_are_added_found_and_revoked(postgres: str) -> None:
    ring, other = KeyTable(postgres), KeyTable(postgres)
    assert ring.load() == {}
    (first, text), (second, known) = added(ring, "read", problems=("walks",)), added(ring)
    before = ring.stamp()
    assert other.load() == {first.id: first, second.id: second}
    assert find_key(other.load(), text) == first
    other.revoke(first.id, 9.0)
    assert (ring.stamp() == before, ring.stamp() == other.stamp()) == (False, True)
    assert ring.load()[first.id] == first._replace(digest="", revoked=9.0)
    assert (find_key(ring.load(), text), find_key(ring.load(), known)) == (None, second)
    with pytest.raises(NotFoundError, match=rf"^id: '{first.id}'; allowed: {second.id}$"):
        ring.revoke(first.id, 9.0)


def test_those_who_come_at_the_same_time_make_one_table(postgres: str) -> None:
    with ThreadPoolExecutor(6) as pool:
        keys = list(pool.map(lambda _: added(KeyTable(postgres))[0].id, range(6)))
    assert sorted(KeyTable(postgres).load()) == sorted(keys)


def test_a_database_that_is_not_there_lets_nobody_in() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    address = f"postgresql://ann:secret@127.0.0.1:{port}/walks"
    with pytest.raises(KeysError, match=rf"^the keys of \S+:{port}/walks cannot be had"):
        Keyed(ring_of(address), unless=LocalhostOnly())
    assert "secret" not in hide_password(address)
    assert "ann" not in hide_password(address)


def test_beyond_this_machine_takes_a_key_that_is_not_revoked(postgres: str) -> None:
    ring = KeyTable(postgres)
    with socket.create_server(("0.0.0.0", 0)) as opened:
        with pytest.raises(InputError, match="there are no keys"):
            make_auth(ring, "postgresql://ann:secret@host/walks", opened)
        key, _ = added(ring)
        make_auth(ring, "x", opened)
        ring.revoke(key.id, 1.0)
        with pytest.raises(InputError) as refused:
            make_auth(ring, "postgresql://ann:secret@host/walks", opened)
    assert "secret" not in str(refused.value)
