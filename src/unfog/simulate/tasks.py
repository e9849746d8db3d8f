"""How work is cut: pieces, which decide bits, and tasks, which do not.

A piece is some trials of one job, played side by side. Its size follows from the job alone, so that however
many workers there are, and whatever interrupts them, moments over trials are added up in the same order. A
task is what a worker is given at a time: as many pieces as take about `AIM` seconds, so that sending it costs
next to nothing, and little is lost with a worker.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

AIM = 2.0  # seconds of a task
LONGEST = 10.0  # seconds of a piece, where fewer trials side by side make it shorter
FEWEST = 25  # trials side by side, however long they take: fewer would take longer each
SOON = 100  # trials of a piece, at most, where a run may stop after any of them
SOON_COMPILED = 1000  # likewise, for an engine that plays more trials in about the same time
ROUNDS_OF_WORK = 4  # tasks for each worker at least, so that none waits long for the last of them


class Piece(NamedTuple):
    """Some trials of the job of one setting."""

    setting: int
    trials: range


Task: TypeAlias = tuple[Piece, ...]


def cut(trials: int, size: int) -> tuple[range, ...]:
    """All trials, so many at a time."""
    return tuple(range(first, min(first + size, trials)) for first in range(0, trials, size))


def bearable(size: int, seconds: float) -> int:
    """The size of a piece that would take so long, made smaller where it takes too long."""
    return size if seconds <= LONGEST else min(size, max(FEWEST, int(size * LONGEST / seconds)))


def grouped(pieces: Sequence[Piece], seconds: Callable[[Piece], float], workers: int) -> Iterator[Task]:
    """Pieces in their order, put together to tasks of about the same length."""
    lengths = [seconds(piece) for piece in pieces]
    aim = _aim(sum(lengths), workers)
    group, length = list[Piece](), 0.0
    for piece, more in zip(pieces, lengths, strict=True):
        if group and length + more > aim:
            yield tuple(group)
            group, length = [], 0.0
        group.append(piece)
        length += more
    if group:
        yield tuple(group)


def in_a_task(seconds: float, total: float, workers: int) -> int:
    """How many pieces of this length `grouped` puts together, where all pieces take `total` seconds."""
    return max(1, int(_aim(total, workers) / seconds))


def _aim(total: float, workers: int) -> float:
    return min(AIM, total / (ROUNDS_OF_WORK * workers))
