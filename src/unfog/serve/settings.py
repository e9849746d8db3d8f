"""The settings of an operator."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """Settings of the service; sizes are in bytes."""

    allow_modules: tuple[str, ...] = ()  # that problems may load code from, as module:name
    backups: Path | None = None  # the folder for backups; None: no backups
    queue: int = 512  # requests that may wait for a store
    body: int = 1 << 20  # of a request's body, at most
    bulk: int = 64 << 20  # of an imported log, at most
    rate: float = 10_000.0  # requests a second of one caller
    advertise: str | None = None  # the URL at which other processes reach this one
