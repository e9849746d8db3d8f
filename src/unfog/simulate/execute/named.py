"""Executors by name: where to play, in a word."""

from unfog.simulate.execute import MOST_WORKERS, Executor
from unfog.validation import InputError, count, nearest, shown

NAMES = ("serial", "processes", "dask", "ray")
CLUSTERS = {"dask": "a scheduler of Dask", "ray": "a cluster of Ray"}
ALLOWED = "serial, processes, dask, dask://HOST:PORT, ray or ray://HOST:PORT"


def executor(on: str | None, workers: int | None = None) -> Executor | None:
    """The executor of this name, with so many workers; None leaves the choice to the plan.

    `dask` and `ray` start worker processes on this machine, all cores unless told. With an address they go to
    the cluster there, for as many workers as it has unless told; `ray` goes where RAY_ADDRESS says.
    """
    if on is None:
        return None
    from unfog.simulate.execute.addresses import MOST_PORT, endpoint
    from unfog.simulate.execute.processes import Processes, cores
    from unfog.simulate.execute.serial import Serial

    name, _, address = on.partition("://") if isinstance(on, str) else ("", "", "")
    workers = None if workers is None else count("workers", workers, most=MOST_WORKERS)
    if on == "serial":
        if workers is not None and workers > 1:
            raise InputError("workers", workers, "1 on 'serial', which is this process alone")
        return Serial()
    if on == "processes":
        return Processes(workers or cores())
    if name not in ("dask", "ray") or (on != name and not address):
        raise InputError("on", shown(on), ALLOWED, nearest(name, NAMES))
    if address and endpoint(address) is None:
        raise InputError("on", repr(on), f"{name}://HOST:PORT, PORT a number from 1 to {MOST_PORT}")
    return _elsewhere(name, address, workers)


def _elsewhere(name: str, address: str, workers: int | None) -> Executor:
    """What it needs is imported now, where somebody answers; complaints call the address as it was told."""
    if address:
        from unfog.simulate.execute.addresses import refuse_silence

        refuse_silence(f"{name}://{address}", CLUSTERS[name])
    if name == "ray":
        from unfog.simulate.execute.ray import Ray

        return Ray(f"ray://{address}" if address else None, workers)
    from unfog.simulate.execute.dask import Dask

    try:
        return Dask(f"tcp://{address}" if address else None, workers)
    except InputError as error:
        if error.field != "on":
            raise
        raise InputError("on", repr(f"dask://{address}"), error.allowed) from None
