"""Every row of the catalogue answers every call, in process and over HTTP, before and after decisions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

from tests.each import each
from tests.live.conformance.places import PLACES, Live, Place
from unfog.agents.catalogue import AGENTS, EVERY
from unfog.validation import InputError

CHANNEL: dict[str, Any] = {
    "context_mean": [1.0, -2.0],
    "context_cov": [[2.0, 0.3], [0.3, 1.0]],
    "noise_cov": [0.5, 0.8],
    "bias_cov": [0.3, 0.4],
    "sample": np.random.default_rng(0).normal([1.0, -2.0], 1.0, (30, 2)).tolist(),
    "mixture": {
        "weights": [0.4, 0.6],
        "means": [[0.0, -2.0], [2.0, -2.0]],
        "covs": [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.2], [0.2, 1.0]]],
    },
}
NOISES = {
    "as usual": [0.5, 0.8],
    "one exact": [0.0, 0.8],
    "nearly exact": [2e-12, 0.8],
    "useless": [2e16, 0.8],
}
TRUE = {"x": 0.5, "y": -1.5}
REFUSED = "is told the bias", "needs a report of how", "learns from bernoulli rewards"


def check_every_call(live: Live, place: Place) -> None:
    """Call everything, decide, reward, reveal, and call everything again."""
    check_views(live)
    plt.close(live.figure())
    for reading in (TRUE, {"x": 2.5, "y": -4.0}, TRUE):
        decision = live.decide(reading)
        assert np.isfinite([*decision.denoised.values(), *decision.sd.values()]).all()
        live.reward(decision.id, 1.0)
        live.reveal(decision.id, TRUE)
    check_views(live)
    plt.close(live.figure())
    store = place.store_of(live.name)
    assert len(list(store.export(live.name))) == len(live.events())
    assert store.replay(verify=True, problem=live.name)[live.name].same


def check_views(live: Live) -> None:
    calls: list[Callable[[], Any]] = [live.belief, live.diagnostics, live.history, live.events, live.pending]
    for call in calls:
        call()


def check_agents(place: Place, noises: dict[str, list[float]]) -> None:
    for name in EVERY if "as usual" in noises or "nearly exact" in noises else AGENTS:
        for noise, noise_cov in noises.items():
            try:
                live = place.made(agent=name, channel=CHANNEL | {"noise_cov": noise_cov})
            except InputError as error:
                if any(reason in str(error) for reason in REFUSED):
                    continue
                raise
            try:
                check_every_call(live, place)
            except Exception as error:
                error.add_note(f"agent {name}, noise {noise}")
                raise


@pytest.mark.slow
@each("noise", ["as usual", "one exact", "useless"])
def test_every_agent_answers_every_call(noise: str, tmp_path: Path) -> None:
    folder = tmp_path / noise
    folder.mkdir()
    with PLACES["file"](folder) as place:
        check_agents(place, {noise: NOISES[noise]})


@pytest.mark.slow
def test_every_agent_answers_over_http(tmp_path: Path) -> None:
    with PLACES["service"](tmp_path) as place:
        check_agents(place, {"nearly exact": NOISES["nearly exact"]})


def test_agents_that_had_no_answer(tmp_path: Path) -> None:
    """`samplinucb` has no theta between decisions; `coupled` inverted a matrix of rank one."""
    with PLACES["file"](tmp_path) as place:
        for name, noise in (("samplinucb", "as usual"), ("coupled", "useless"), ("robust", "one exact")):
            channel = CHANNEL | {"noise_cov": NOISES[noise]}
            check_every_call(place.made(agent=name, channel=channel), place)
