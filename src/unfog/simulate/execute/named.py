"""Executors by name: where to play, in a word."""

from difflib import get_close_matches

from unfog.inputs import InputError, count
from unfog.simulate.execute import Executor
from unfog.simulate.execute.processes import Processes, cores
from unfog.simulate.execute.serial import Serial

NAMES = ("serial", "processes", "dask", "ray")
ALLOWED = "serial, processes, dask, dask://HOST:PORT, ray or ray://HOST:PORT"


def executor(on: str | None, workers: int | None = None) -> Executor | None:
    """The executor of this name, with so many workers; None leaves the choice to the plan.

    `dask` and `ray` start worker processes on this machine, all cores unless told. With an address they go to
    the cluster there, for as many workers as it has unless told; `ray` goes where RAY_ADDRESS says.
    """
    if on is None:
        return None
    name, _, address = on.partition("://") if isinstance(on, str) else ("", "", "")
    workers = None if workers is None else count("workers", workers)
    if on == "serial":
        return Serial()
    if on == "processes":
        return Processes(workers or cores())
    if name not in ("dask", "ray") or (on != name and not address):
        near = get_close_matches(name, NAMES, 1)
        raise InputError(
            "on", on, f"{ALLOWED}; did you mean {near[0]!r}?" if near and name != near[0] else ALLOWED
        )
    return _elsewhere(name, address, workers)


def _elsewhere(name: str, address: str, workers: int | None) -> Executor:
    """What it needs is imported now."""
    if name == "dask":
        from unfog.simulate.execute.dask import Dask

        return Dask(f"tcp://{address}" if address else None, workers)
    from unfog.simulate.execute.ray import Ray

    return Ray(f"ray://{address}" if address else None, workers)
