"""A small store on a clock of one's own, for tests."""

from pathlib import Path
from typing import Any

import numpy as np

import unfog
from unfog.live import Problem, Store
from unfog.live.snapshot import apply_rows, digest
from unfog.maths.arrays import Array

CHANNEL = {
    "context_mean": [1.0, -2.0],
    "context_cov": [[2.0, 0.3], [0.3, 1.0]],
    "noise_cov": [0.5, 0.8],
    "bias_cov": [0.3, 0.4],
}
COORDINATES = ["x", "y"]
ARMS = ["a", "b", "c"]


class Hand:
    """A clock that is moved by hand."""

    def __init__(self, time: float = 1e9) -> None:
        self.time = time

    def __call__(self) -> float:
        return self.time


def opened(path: Path, clock: Hand | None = None) -> Store:
    return unfog.live.open(path / "test.unfog", sync="normal", clock=clock)


def problem(store: Store, name: str = "p", **terms: Any) -> Problem:
    """Two coordinates, three arms, a channel; unless told otherwise."""
    told: dict[str, Any] = {"context": COORDINATES, "arms": ARMS, "channel": CHANNEL, "seed": 11}
    return store.problem(name, **told | terms)


def replayed(live: Store | Problem, name: str = "p") -> str:
    """The hash of what the log says; what is remembered is left as it is."""
    processor = live.processor
    processor.log.commit(processor.log.last, processor.log.epoch)
    return digest(apply_rows(processor.made(name), processor.log.read(name))[0])


def theta(live: Store | Problem, name: str = "p") -> tuple[Array, Array]:
    """Mean (m,) and covariance of what is believed of theta."""
    runner = live.processor.cache.get(name).runner
    found: Any = runner.agent.learner.belief(runner.setup.learner, runner.learner)
    root = found.root
    cov = root @ np.swapaxes(root, -1, -2)
    return np.array(found.mean).reshape(-1), np.array(cov)
