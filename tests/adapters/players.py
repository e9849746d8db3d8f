"""The libraries as the benchmark plays them, alone or behind a denoiser, and what is said of a reading."""

from functools import partial
from typing import Any

from benchmarks.wrapped import alone
from benchmarks.wrapped_players import PLAYERS as LIBRARIES

from unfog.adapters import wrap
from unfog.adapters.wrap import Denoises, Names

__all__ = ["LIBRARIES", "as_it_is", "behind"]

DIM = 3

Told = list[dict[str, Any]]  # of each reading, in the order of decisions


class Telling:
    """A wrapped bandit that hears of each reading whatever is said of it, where it decides."""

    def __init__(self, bandit: Any, told: Told) -> None:
        self.bandit, self.told = bandit, iter(told)

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self.bandit, name)
        return partial(verb, **self._next()) if name in ("predict", "pull") else verb

    def _next(self) -> dict[str, Any]:
        said = next(self.told)
        if isinstance(self.bandit.way, Names):
            return said
        return {{"group": "groups"}.get(name, name): [value] for name, value in said.items()}


def as_it_is(library: str) -> Any:
    return LIBRARIES[library](alone, True, DIM, 3)


def behind(library: str, denoiser: Denoises, told: Told | None = None) -> Any:
    def front(bandit: Any, **options: Any) -> Any:
        wrapped = wrap(bandit, denoiser, **options)
        return wrapped if told is None else Telling(wrapped, told)

    return LIBRARIES[library](front, True, DIM, 3)
