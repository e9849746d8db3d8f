"""Executors by name; a cluster is only looked for when it is asked for."""

import socket
import subprocess
import sys

import pytest

from unfog.simulation.executors import make_executor
from unfog.simulation.executors.local import Processes, Serial, cores
from unfog.validation import InputError


def test_names() -> None:
    assert make_executor(None, 3) is None
    assert make_executor("serial") == make_executor("serial", 1) == Serial()
    assert make_executor("processes", 3) == Processes(3)
    assert make_executor("processes") == Processes(cores())


@pytest.mark.slow
def test_names_of_clusters_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert repr(make_executor("dask", 3)) == "Dask(None, 3)"
    assert repr(make_executor("ray", 3)) == "Ray('local', 3)"


def test_anything_else_is_refused_by_name() -> None:
    for on, told in [
        ("daks", "executor: 'daks' (did you mean 'dask'?); allowed: "),
        ("Ray", "executor: 'Ray' (did you mean 'ray'?); allowed: "),
        ("spark://here:1", "ray or ray://HOST:PORT"),
        ("dask://", "ray or ray://HOST:PORT"),
        ("serial://here:1", "ray or ray://HOST:PORT"),
        ("", "ray or ray://HOST:PORT"),
        (7, "ray or ray://HOST:PORT"),
    ]:
        check_anything_else_is_refused_by_name(on, told)


def check_anything_else_is_refused_by_name(on: object, told: str) -> None:
    with pytest.raises(InputError) as refused:
        make_executor(on)  # type: ignore[arg-type]
    assert str(refused.value).startswith("executor: ")
    assert told in str(refused.value)


def test_an_address_is_a_host_and_a_port() -> None:
    for on in ["dask://host:notaport", "ray://host:99999", "dask://host", "ray://:1"]:
        check_an_address_is_a_host_and_a_port(on)


def check_an_address_is_a_host_and_a_port(on: str) -> None:
    told = rf"^executor: '{on}'; allowed: {on[: on.index(':')]}://HOST:PORT, PORT a number from 1 to 65535$"
    with pytest.raises(InputError, match=told):
        make_executor(on)


@pytest.mark.parametrize("name", ["dask", "ray"])
def test_an_address_where_nobody_listens_is_refused_before_anything_is_imported(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, f"unfog.simulation.executors.{name}", None)
    with socket.socket() as held:  # a port of its own that does not listen
        held.bind(("127.0.0.1", 0))
        on = f"{name}://127.0.0.1:{held.getsockname()[1]}"
        with pytest.raises(InputError, match=rf"^executor: '{on}'; allowed: .* that answers \(.*refused"):
            make_executor(on)


def test_one_process_alone_has_no_more_workers() -> None:
    with pytest.raises(InputError, match=r"^workers: 8; allowed: 1 on 'serial', which is this process"):
        make_executor("serial", 8)


def test_workers_are_counted_before_anything_starts() -> None:
    for on in ("processes", "dask", "ray"):
        with pytest.raises(InputError, match=r"^workers: 0; "):
            make_executor(on, 0)


@pytest.mark.parametrize("module", ["distributed", "ray"])
@pytest.mark.slow
def test_without_the_extra_the_command_says_which(module: str) -> None:
    on = {"distributed": "dask"}.get(module, module)
    code = f"import sys; sys.modules[{module!r}] = None; from unfog.cli import main; main()"
    command = [sys.executable, "-c", code, "run", "fig1-gaussian", "--executor", on]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    ways = f"pip install 'unfog[{on}]', or in a clone pip install '.[{on}]'"
    hint = f"unfog: {module} is not installed; it comes with the extra {on!r}: {ways}\n"
    assert done.stderr == hint


def test_no_machine_has_so_many_workers() -> None:
    for on in ["processes", "dask", "ray", "dask://127.0.0.1:9"]:
        check_no_machine_has_so_many_workers(on)


def check_no_machine_has_so_many_workers(on: str) -> None:
    with pytest.raises(InputError, match=r"^workers: 2000000; allowed: a whole number, .* at most 10000$"):
        make_executor(on, 2_000_000)
