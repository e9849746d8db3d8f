"""What `unfog serve --demo` shows: a past that ends now, every panel with something in it, and a present."""

import re
import threading
from pathlib import Path

import numpy as np
import pytest

from unfog import live
from unfog.lab import demo_service
from unfog.lab.demo_service import SITES
from unfog.live import Store
from unfog.validation import InputError

NOW = 1.8e9


@pytest.fixture(scope="module", name="path")
def _path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "demo.unfog"


@pytest.fixture(scope="module", name="lives")
def _lives(path: Path) -> list[demo_service.Life]:
    return demo_service.filled(path, NOW)


@pytest.mark.slow
def test_the_past_ends_now_and_has_something_for_every_panel(
    path: Path, lives: list[demo_service.Life]
) -> None:
    with live.open(path, clock=lambda: NOW) as store:
        assert store.names() == [site.name for site in SITES]
        alarms = {name: store.problem(name).describe()["alarm"] for name in store.names()}
        for site in SITES:
            events = store.problem(site.name).events()
            assert events[-1]["time"] > NOW - 86_400
            assert sum(one["kind"] == "decide" for one in events) == site.decisions
            _panels(store, site.name)
    assert [name for name, said in alarms.items() if said] == ["greenhouse"]
    assert len(lives) == 4


def _panels(store: Store, name: str) -> None:
    """Beliefs of a bias, rewards in their intervals or bins, arms, and what is particular to a site."""
    problem = store.problem(name)
    data, about = problem.diagnostics(), problem.describe()
    assert np.isfinite(data.bias.values).all()
    assert (data.share.values > 0).all()
    assert 0 < data.attrs["join_rate"] < 1
    assert about["pending"] > 0
    if name == "banner":
        assert data.in_bin.values.sum() > 100
    else:
        assert np.isfinite(data.coverage.values).all()
        assert data.rmse_denoised.values[0] < data.rmse_noisy.values[0]
    assert bool(about["shadows"]) == (name in ("clinic", "banner"))
    if name == "window":
        weights = problem.belief().weight
        best = weights.hypothesis.values[int(weights.values.argmax())]
        assert 4 < float(re.findall(r"size ([\d.]+)", best)[0]) < 16  # nine times the variance


@pytest.mark.slow
def test_life_goes_on(path: Path, lives: list[demo_service.Life]) -> None:
    """Decisions and their reports, through whatever has the verbs of a store."""
    time = [NOW]

    class Stop(threading.Event):
        """Seconds pass at once; after so many it is over."""

        def wait(self, timeout: float | None = None) -> bool:
            time[0] += timeout or 0.0
            return time[0] > NOW + 60

    with live.open(path, clock=lambda: time[0]) as store:
        before = {name: store.problem(name).events()[-1]["seq"] for name in store.names()}
        demo_service.go_on(lives, store, Stop(), lambda: time[0])
        new = {name: [one["kind"] for one in store.events(name, before[name])] for name in store.names()}
    assert 40 < sum(kinds.count("decide") for kinds in new.values()) < 90
    assert all(new.values())
    assert new["clinic"].count("reward") > 10
    assert "reveal" in new["clinic"]


def test_a_store_that_is_there_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "mine.unfog"
    path.write_text("mine")
    with pytest.raises(InputError, match=r"mine\.unfog is there already; allowed: a new file, for a demo"):
        demo_service.filled(path, NOW)
    assert path.read_text() == "mine"
