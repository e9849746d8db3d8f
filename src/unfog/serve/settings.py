"""What an operator may set."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """How the service is to behave; sizes in bytes."""

    modules: tuple[str, ...] = ()  # whose code problems may name, as module:name
    backups: Path | None = None  # the folder where copies go; None: there are none
    queue: int = 512  # requests that may wait for a store
    body: int = 1 << 20  # of a request
    bulk: int = 64 << 20  # of a log that is taken in
    rate: float = 10_000.0  # requests a second of one caller
    advertise: str | None = None  # where other processes reach this one
