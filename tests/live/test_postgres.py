"""A log in PostgreSQL: owners, takeovers, connections that break, and the same decisions as in a file."""

import os
import subprocess
import sys
import threading
import time
from copy import copy
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.live.breaking import Server
from tests.live.ground import COORDINATES, Hand, problem
from tests.live.places import Database, contents, log_at, owned
from tests.live.rows import made, put
from unfog import live
from unfog.live.errors import NotFoundError, OwnershipLostError, ServedElsewhereError, StoreError
from unfog.live.log import EventLog
from unfog.live.postgres import connection, ownership
from unfog.live.postgres.backend import PostgresBackend
from unfog.live.postgres.ownership import Owner, Owners, Shared
from unfog.live.processor import passing
from unfog.live.store import Store
from unfog.validation import InputError


def asked(dsn: str, statement: Any, *told: object) -> list[tuple[Any, ...]]:
    """What the database says, over a connection of its own."""
    with psycopg.connect(dsn, autocommit=True, options="-c search_path=unfog") as connection:
        cursor = connection.execute(statement, told)
        return cursor.fetchall() if cursor.description else []


def test_an_old_owner_writes_nothing_and_never_again(postgres: str) -> None:
    old = log_at(postgres, "walks", owned(postgres, "walks"))
    rows = put(old, 3)
    queued = made(old, 2)
    ticket, epoch = old.add(queued), old.epoch
    with log_at(postgres, "walks", owned(postgres, "walks")) as new:
        own = put(new, 1)
        with pytest.raises(StoreError, match=r"row 5 was not kept: another process serves 'walks' by now"):
            old.commit(ticket, epoch)
        assert isinstance(old.lost, OwnershipLostError)
        assert old.epoch == epoch + 1
        for use in (
            lambda: old.add(made(old)),
            lambda: old.find("walks", "k4"),
            lambda: old.read(),
            lambda: old.keep("walks", 3, "f", b""),
            lambda: old.rewrite([rows[0]._replace(body="{}")]),
            lambda: old.backend.open(),
        ):
            with pytest.raises(StoreError, match=r"another process serves 'walks' by now, epoch 1 is over"):
                use()
        assert list(new.read()) == rows + own
        put(new)
    old.close()
    assert asked(postgres, "SELECT seq, epoch FROM event ORDER BY seq") == [
        (1, 1),
        (2, 1),
        (3, 1),
        (4, 2),
        (5, 2),
    ]


def test_an_old_owner_does_not_see_what_the_new_one_writes(postgres: str) -> None:
    with log_at(postgres, "walks", owned(postgres, "walks")) as old:
        rows = put(old, 3)
        with log_at(postgres, "walks", owned(postgres, "walks")) as new:
            new.commit(new.add([made(new)[0]._replace(decision="d2")]), new.epoch)
            new.keep("walks", 4, "new", b"")
            assert old.find("walks", "k4") == (None, 3)
            assert old.of("walks", "d2") == [rows[1]]
            assert old.snapshot("walks") is None
            assert list(old.read()) == rows
            with pytest.raises(StoreError, match=r"not known whether it was done: another process"):
                old.keep("walks", 3, "old", b"")
            assert new.snapshot("walks") == (4, "new", b"")


def test_what_became_of_the_last_row_is_known_after_a_takeover(postgres: str) -> None:
    """The commit was done, its answer was lost, and another process was quicker than the next opening."""
    for late in (False, True):
        name, server = f"walks {late}", Server(postgres)
        log = log_at(postgres, name, owned(postgres, name), server.connect)
        put(log, 2, name)
        end = server.end

        def taken_over(connection: psycopg.Connection, name: str = name, end: Any = end) -> None:
            end(connection)
            owned(postgres, name)

        server.end = taken_over  # type: ignore[method-assign]
        server.fail([1], late)
        ticket, epoch = log.add(made(log, 1, name)), log.epoch
        if late:
            log.commit(ticket, epoch)
        else:
            with pytest.raises(StoreError, match=r"row 3 was not kept: PostgreSQL says: .*; nothing was"):
                log.commit(ticket, epoch)
        assert log.lost is not None
        assert asked(postgres, "SELECT count(*) FROM event WHERE key = 'k3'") == [(int(late),)]


def do_commit(log: EventLog, name: str) -> None:
    log.commit(log.add(made(log, 2, name)), log.epoch)


def do_keep(log: EventLog, name: str) -> None:
    log.keep(name, 3, "f", b"blob")


def do_rewrite(log: EventLog, name: str) -> None:
    log.rewrite([next(log.read(upto=1))._replace(body="{}", key=None), *made(log, 1, name)])


@pytest.mark.slow
@pytest.mark.parametrize("do", [do_commit, do_keep, do_rewrite])
def test_a_session_that_is_ended_at_each_statement(postgres: str, do: Any) -> None:
    first, reached = 1, True
    while reached:
        reached = ended(postgres, do, range(first, first + 1 + first % 3), late=first % 2 == 0)
        first += 1
    assert first > 2
    ended(postgres, do, range(1, 2), late=True)


def ended(postgres: str, do: Any, calls: range, late: bool) -> bool:
    """One call while the server ends sessions around these statements; whether it got so far."""
    server, name = Server(postgres), f"walks {calls} {late}"
    with log_at(postgres, name, owned(postgres, name), server.connect) as log:
        old, said = put(log, 3, name), ""
        new = old if do is do_keep else old + made(log, 2, name)
        if do is do_rewrite:
            new = [old[0]._replace(body="{}", key=None), *old[1:], *made(log, 1, name)]
        server.fail(calls, late)
        try:
            do(log, name)
        except StoreError as error:
            said = str(error)
        reached = server.calls >= calls.start
        server.fail(())
        try:
            found = list(log.read())
        except StoreError:  # the session was ended after its last answer, and the next one is fresh
            found = list(log.read())
        assert found == new if not said else found in (old, new)
        assert "nothing was changed" not in said or found == old
        assert "\n" not in said
        last = put(log, 1, name)
    with log_at(postgres, name, owned(postgres, name)) as log:
        assert list(log.read()) == found + last
    return reached


def test_a_commit_of_a_connection_that_broke_does_not_come_later(postgres: str) -> None:
    """The old connection is alive on the server, and its commit still on its way."""
    log = log_at(postgres, "walks", owned(postgres, "walks"))
    put(log, 2)
    assert isinstance(log.backend, PostgresBackend)
    old, before = connection.connected(postgres), copy(log.backend)
    log.backend.close_connection()
    rows = list(log.read())
    assert not before._append(old, made(log))
    assert list(log.read()) == rows
    put(log)
    old.close()
    log.close()
    assert len(contents(Database(postgres))) == 3


def test_one_of_many_claims_it(postgres: str) -> None:
    many = [Owners(postgres, f"http://{i}") for i in range(8)]
    found: dict[str | None, int | None] = {}
    start = threading.Barrier(len(many))

    def work(one: Owners) -> None:
        start.wait()
        found[one.url] = one.claim("walks")  # the tables are made by whoever is first

    threads = [threading.Thread(target=work, args=(one,)) for one in many]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (first,) = [url for url, epoch in found.items() if epoch is not None]
    assert found[first] == 1
    assert many[0].lookup("walks") == Owner(first, 1, alive=True)
    assert [one.holds("walks") for one in many] == [one.url == first for one in many]
    for one in many:
        one.close()


def test_a_lease_is_renewed_given_back_and_taken_over(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(ownership, "passing", lambda: now[0])
    a, b = Owners(postgres, "http://a"), Owners(postgres, "http://b")
    assert a.lookup("walks") is None
    assert (a.claim("walks"), a.claim("walks"), b.claim("walks")) == (1, None, None)
    now[0] += 2.9
    assert a.holds("walks")
    a.renew()
    now[0] += 2.9
    assert a.holds("walks")
    now[0] += 0.1
    assert not a.holds("walks")  # the database may not say so yet: this clock is ahead
    a.renew()
    assert a.holds("walks")
    asked(postgres, "UPDATE owner SET lease_until = now() - interval '1 second'")
    assert b.lookup("walks") == Owner("http://a", 1, alive=False)
    assert b.claim("walks") == 2
    a.renew()
    assert (a.epoch("walks"), a.holds("walks"), b.holds("walks")) == (None, False, True)
    a.release("walks")
    assert a.lookup("walks") == Owner("http://b", 2, alive=True)
    b.close()
    assert a.lookup("walks") == Owner("http://b", 2, alive=False)
    assert a.claim("walks") == 3
    a.close()


def test_an_owner_that_stops_within_a_transaction_holds_nobody_up(postgres: str) -> None:
    """The server ends its session, and with it the lock on the owner's row."""
    log = log_at(postgres, "walks", owned(postgres, "walks"))
    put(log, 2)
    assert isinstance(log.backend, PostgresBackend)
    stopped = connection.connected(postgres)
    stopped.execute("BEGIN")
    assert log.backend._lock(stopped)
    other = Owners(postgres)
    assert other.claim("walks") == 2
    other.close()
    with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
        stopped.execute("COMMIT")
    stopped.close()
    log.close()


def test_leases_end_by_the_clock_of_the_database(postgres: str) -> None:
    with Shared(postgres, "http://a") as a:
        problem(a.place("p"))
        (((left,),)) = asked(postgres, "SELECT extract(epoch FROM lease_until - now()) FROM owner")
        assert 1.5 < float(left) <= 3.0


def test_two_processes_share_problems(postgres: str) -> None:
    with Shared(postgres, "http://a") as a, Shared(postgres, "http://b") as b:
        first = problem(a.place("p"))
        second = problem(b.place("q"), "q")
        assert a.names() == b.names() == ["p", "q"]
        first.decide([0.5, -1.0], key="one")
        second.decide([0.5, -1.0])
        for here, name, url in ((a, "q", "http://b"), (b, "p", "http://a")):
            for ask in (here.store, here.place):
                with pytest.raises(ServedElsewhereError, match=rf"'{name}' is served at {url}") as error:
                    ask(name)
                assert error.value.url == url
        with pytest.raises(NotFoundError, match=r"^name: 'r'; allowed: p, q$"):
            a.store("r")
        assert [store.names() for store in a.stores()] == [["p"]]
        with pytest.raises(InputError, match=r"^problem: 'q'; allowed: 'p', which alone is kept here$"):
            problem(a.store("p"), "q")
        kept = a.store("p").problem("p").state_hash()
        a.close()
        assert b.store("p").problem("p").state_hash() == kept
        again = b.store("p").problem("p").decide([0.5, -1.0], key="one")
        assert again.number == 0
    assert asked(postgres, "SELECT DISTINCT epoch FROM event") == [(1,)]


def test_an_owner_that_could_not_renew_does_not_answer(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is taken over meanwhile, and when it is back it drops what it has and says who serves it."""
    monkeypatch.setattr(ownership, "EVERY", 3600.0)  # nothing happens by itself
    with Shared(postgres, "http://a") as a, Shared(postgres, "http://b") as b:
        walks = problem(a.place("p"))
        walks.decide([0.5, -1.0])
        monkeypatch.setattr(ownership, "passing", lambda: time.monotonic() + 1e9)
        for use in (a.store, a.place):
            with pytest.raises(
                StoreError, match=r"^the lease on 'p' may be over: the database could not be"
            ) as e:
                use("p")
            assert not isinstance(e.value, ServedElsewhereError)
        assert a.stores() == []
        monkeypatch.undo()
        a.owners.renew()
        assert a.store("p").processor is walks.processor
        asked(postgres, "UPDATE owner SET lease_until = now() - interval '1 second'")
        taken = b.store("p")
        with pytest.raises(
            StoreError, match=r"row 3 was not kept: another process serves 'p' by now, epoch 1"
        ):
            walks.decide([0.5, -1.0])
        with pytest.raises(ServedElsewhereError, match=r"'p' is served at http://b"):
            a.store("p")
        with pytest.raises(StoreError):
            walks.decide([0.5, -1.0])
        assert taken.problem("p").decide([0.5, -1.0]).number == 1
        assert taken.replay(verify=True)["p"].same


def test_a_database_that_does_not_answer_is_told_of(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "EVERY", 3600.0)
    with Shared(postgres, "http://a") as a:
        assert a.trouble == ""
        now = passing()
        monkeypatch.setattr(ownership, "passing", lambda: now + 20)
        assert a.trouble == "the database has not answered for 20 seconds"
        a._renew()  # though nothing is owned
        assert a.trouble == ""


@pytest.mark.parametrize("asks", [False, True])
def test_an_owner_that_finds_out_by_itself_drops_the_store(
    postgres: str, monkeypatch: pytest.MonkeyPatch, asks: bool
) -> None:
    monkeypatch.setattr(ownership, "EVERY", 3600.0)
    with Shared(postgres, "http://a") as a, Shared(postgres, "http://b") as b:
        walks = problem(a.place("p"))
        asked(postgres, "UPDATE owner SET lease_until = now() - interval '1 second'")
        b.store("p")
        a.owners.renew()
        assert a.stores() == []
        if asks:
            with pytest.raises(ServedElsewhereError, match=r"'p' is served at http://b"):
                a.store("p")
        else:
            a._tend()
        assert isinstance(walks.processor.log.lost, OwnershipLostError)
        assert not walks.processor.log.backend.is_open
        with pytest.raises(StoreError, match=r"'p' at .* cannot be used: it is closed"):
            walks.decide([0.5, -1.0])


def test_snapshots_are_made_for_whoever_takes_over(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "EVERY", 3600.0)
    monkeypatch.setattr(ownership, "TAIL", 5)
    with Shared(postgres, "http://a") as a:
        walks = problem(a.place("p"))
        found = []
        for count in (3, 3, 6):
            for _ in range(count):
                walks.decide([0.5, -1.0])
            a._tend()
            kept = a.store("p").processor.log.snapshot("p")
            found.append(kept and kept[0])
            monkeypatch.setattr(ownership, "SAVED", 0.0)
    assert found == [None, 7, 13]


@pytest.mark.slow
def test_problems_that_nobody_serves_are_taken_over(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "EVERY", 0.05)
    with Shared(postgres, "http://b") as b:
        log_at(postgres, "never made", owned(postgres, "never made")).close()
        with Shared(postgres, "http://a") as a:
            problem(a.place("p")).decide([0.5, -1.0])
        until = time.monotonic() + 10
        while not b.stores() and time.monotonic() < until:
            time.sleep(0.02)
        assert [store.names() for store in b.stores()] == [["p"]]
        monkeypatch.setattr(ownership, "EMPTY", -1.0)
        b.place("another")
        while (owner := b.owners.lookup("another")) and owner.alive and time.monotonic() < until:
            time.sleep(0.02)
        assert owner is not None
        assert not owner.alive
        assert [store.names() for store in b.stores()] == [["p"]]


def played(store: live.Store, clock: Hand) -> list[tuple[str, str]]:
    """Decisions, rewards, true contexts, arms, shadows and expiries, as they come out."""
    walks = problem(store, reward_window="10s", update="at_close", default_reward=0.0)
    found = []
    for i in range(40):
        clock.time += 1.0 + i / 7
        made = walks.decide([0.3 * i - 5, None if i % 5 == 0 else 1.0], unit=f"u{i % 3}", key=f"k é {i}")
        found.append((made.id, made.arm))
        if i % 2:
            walks.reward(made.id, i / 10)
        if i % 3 == 0:
            walks.reveal(made.id, {COORDINATES[0]: 0.1 * i})
        if i == 20:
            walks.add_arm("d\u0101")
            walks.add_shadow("naive")
    return found


def test_the_same_in_a_file_and_in_postgres(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arms, beliefs, exports, replays and snapshots; and logs travel both ways."""
    monkeypatch.setattr(
        "unfog.live.config.secrets.token_hex", lambda size: "5a" * size
    )  # ids of decisions have it
    clock = Hand()
    with live.open(tmp_path / "file.unfog", clock=clock) as file:
        in_file = played(file, clock)
        digest, lines = file.problem("p").state_hash(), list(file.export("p"))
    clock.time = 1e9
    with Shared(postgres, "http://a", clock=clock) as a:
        store = a.place("p")
        assert played(store, clock) == in_file
        assert list(store.export("p")) == lines
        assert store.problem("p").state_hash() == digest
        assert store.replay(verify=True)["p"].same
        assert a.place("q").import_events(lines, "q") == len(lines)
        assert a.store("q").import_events(lines, "q") == 0
        copies = list(a.store("q").export("q"))
        with pytest.raises(StoreError, match=r"'p' at postgresql://.* is in PostgreSQL: .* with pg_dump$"):
            store.backup(tmp_path / "copy.unfog")
        with pytest.raises(StoreError, match=r"is no file$"):
            _ = store.path
    with Shared(postgres, "http://b", clock=clock) as b:
        again = b.store("p")
        assert again.processor.log.snapshot("p") is not None
        assert again.problem("p").state_hash() == digest
        assert again.processor.cache.unsaved("p") == 0  # of the snapshot alone
    with live.open(tmp_path / "back.unfog", clock=clock) as back:
        assert back.import_events(copies, "p") == len(lines)
        assert back.problem("p").state_hash() == digest


def test_a_unit_is_erased(postgres: str) -> None:
    clock = Hand()
    with Shared(postgres, "http://a", clock=clock) as a:
        store = a.place("p")
        played(store, clock)
        assert store.erase(unit="u1") == {"p": 13}
        assert asked(postgres, "SELECT count(*) FROM event WHERE body LIKE '%%\"u1\"%%'") == [(0,)]
        assert store.replay(verify=True)["p"].same
        store.problem("p").decide([1.0, 1.0], unit="u1")


def test_settings_of_the_connection(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for sync, code in (("full", "on"), ("normal", "local")):
        with Database(postgres).open(sync) as log:
            assert Database(postgres).said(log, "SHOW synchronous_commit") == [(code,)]
    with pytest.raises(InputError, match=r"^sync: 'off'; allowed: full, normal$"):
        Shared(postgres, sync="off")
    for dsn in (7, "postgresql://ann:secret@host:notaport:5/x y"):
        with pytest.raises(InputError, match=r"^dsn: .*allowed: an address such as postgresql") as error:
            Shared(dsn)  # type: ignore[arg-type]
        assert "secret" not in str(error.value)
    assert connection.where("postgresql://ann:secret@host:99/walks") == "postgresql://host:99/walks"
    with pytest.raises(
        StoreError, match=r"^postgresql://127.0.0.1:1/x cannot be asked: PostgreSQL says: "
    ) as e:
        Shared("postgresql://ann:secret@127.0.0.1:1/x")
    assert "secret" not in str(e.value)


@pytest.mark.parametrize(("version", "writer"), [(1, "unfog 0.2 or older"), (3, "a newer unfog")])
def test_a_database_of_another_version_is_refused(postgres: str, version: int, writer: str) -> None:
    owned(postgres, "walks")
    asked(postgres, f"UPDATE layout SET version = {version}")
    with pytest.raises(
        StoreError, match=f"tables of version {version}, written by {writer}; allowed: version 2"
    ):
        Shared(postgres)


def test_names_that_are_hard_to_write(postgres: str) -> None:
    names = ['Zoë\'s 100% "steps"', "a\\b;--", "ﬁ", "%s"]
    with Shared(postgres, "http://a") as a:
        for name in names:
            walks = problem(a.place(name), name)
            made = walks.decide([0.5, -1.0], unit=name, key=name)
            walks.reward(made.id, 1.0, key=f"{name} paid")
            assert a.store(name).processor.log.find(name, name)[0] is not None
        assert a.names() == names
    with Shared(postgres, "http://b") as b:
        for name in names:
            assert b.store(name).problem(name).decide([0.5, -1.0], unit=name, key=name).number == 0


def test_few_connections_for_many_problems(postgres: str) -> None:
    with Shared(postgres, "http://a") as a:
        names = [f"p{i}" for i in range(20)]
        several = [problem(a.place(name), name) for name in names]
        threads = [threading.Thread(target=one.decide, args=([0.5, -1.0],)) for one in several * 3]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ((count,),) = asked(
            postgres, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        )
        assert count <= connection.SIZE + 3  # two of the owners' and this one
        assert asked(postgres, "SELECT DISTINCT count(*) FROM event GROUP BY problem") == [(4,)]
        assert len(a.stores()) == 20


def test_a_server_that_ended_all_sessions_costs_one_error(postgres: str) -> None:
    """What is remembered stays: a question that failed has changed nothing."""
    with Shared(postgres, "http://a") as a:
        walks = problem(a.place("p"))
        made = walks.decide([0.5, -1.0])
        epoch = walks.processor.log.epoch
        with a._pool.using(), a._pool.using():
            pass  # there are two from now on
        others = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        asked(postgres, f"{others} WHERE datname = current_database() AND pid <> pg_backend_pid()")
        with pytest.raises(StoreError, match=r"the row of a key could not be read: Postg"):
            walks.decide([0.5, -1.0], key="k")
        assert walks.processor.log.epoch == epoch
        assert walks.decide([0.5, -1.0], key="k").number == made.number + 1


FORK = """
import os, sys
from tests.live.places import log_at
from unfog.live.backend import Row
log = log_at(sys.argv[1], "p", int(sys.argv[2]))
def put():
    log.commit(log.add([Row(log.last + 1, "p", "x", None, None, 1.0, "{}")]), log.epoch)
put()
child = os.fork()
if child == 0:
    try:
        put()
    except Exception as error:
        print(error)
    log.close()
    sys.exit(0)  # with all that an interpreter does at its end
os.waitpid(child, 0)
put()
print(log.epoch)
log.close()
"""


@pytest.mark.slow
def test_a_forked_child_leaves_the_connection_to_its_parent(postgres: str) -> None:
    command = [sys.executable, "-c", FORK, postgres, str(owned(postgres, "p"))]
    root = str(Path(__file__).parents[2])
    paths = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[0].endswith("which alone may use it; nothing was changed")
    assert done.stdout.splitlines()[1:] == ["0"]
    assert asked(postgres, "SELECT count(*) FROM event") == [(2,)]


def test_a_mistake_in_one_problem_does_not_end_the_care_of_others(
    postgres: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ownership, "EVERY", 0.02)
    with Shared(postgres, "http://a") as a:
        for name in ("one", "two"):
            problem(a.place(name), name)
    claim = Shared._claimed

    def clumsy(self: Shared, name: str) -> Store:
        if name == "one":
            raise ZeroDivisionError
        return claim(self, name)

    monkeypatch.setattr(Shared, "_claimed", clumsy)
    with Shared(postgres, "http://b") as b:
        end = time.monotonic() + 20
        while [store.names() for store in b.stores()] != [["two"]]:
            assert time.monotonic() < end
            time.sleep(0.02)
        assert all(thread.is_alive() for thread in b._threads)
    assert [one.levelname for one in caplog.records if one.name == "unfog.live"] == ["ERROR"]
