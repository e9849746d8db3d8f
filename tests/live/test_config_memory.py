"""Problems that would take more memory than may be are refused before they take it."""

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import unfog
from unfog.live import Store, config
from unfog.validation import InputError

LITTLE = 150_000_000  # bytes


def coordinates(number: int) -> list[str]:
    return [f"c{i}" for i in range(number)]


def arms(number: int) -> list[str]:
    return [f"a{i}" for i in range(number)]


def channel(d: int) -> dict[str, Any]:
    ones = [1.0] * d
    return {"context_mean": [0.0] * d, "context_cov": ones, "noise_cov": ones, "bias_cov": ones}


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with unfog.live.open(tmp_path / "a.unfog", sync="normal") as found:
        yield found


@pytest.mark.parametrize(
    ("d", "number", "more"),
    [
        (1000, 1000, {}),
        (500, 10_000, {}),
        (5, 10_000, {"rewards": "binary"}),
        (5, 10_000, {"prior_cov": [1.0] * 60_000}),
        (5, 10_000, {"agent": "unfog-toptwo"}),
        (2, 0, {"features": "matrix", "arms": {"a": [[1.0, 0.0]] * 20_000}}),
    ],
)
def test_a_problem_that_is_too_large_is_refused_before_it_is_made(
    store: Store, d: int, number: int, more: dict[str, Any]
) -> None:
    given = {"context": coordinates(d), "arms": arms(number), "agent": "unfog", **more}
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="GiB of memory") as refused:
            store.problem("large", **given)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert refused.value.field == "arms"
    assert most < LITTLE
    assert store.names() == []


def test_arms_and_shadows_that_come_later_are_counted(store: Store) -> None:
    """A shadow may take more than the one that is obeyed."""
    walks = store.problem("walks", context=coordinates(5), arms=arms(900), agent="late", rewards="binary")
    before = walks.state_hash()
    with pytest.raises(InputError, match="GiB of memory"):
        store.problem("naive", context=coordinates(5), arms=arms(1000), agent="naive", rewards="binary")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(config, "MOST", 1 << 25)
        with pytest.raises(InputError, match=r"'naive' about 0\.9 GiB") as refused:
            walks.add_shadow("naive")
        assert refused.value.field == "agent"
        with pytest.raises(InputError, match="GiB of memory") as refused:
            walks.update_arms(add=dict.fromkeys(f"b{i}" for i in range(9000)))
        assert refused.value.field == "add"
        walks.add_arm("one")
        walks.retire_arm("one")
    assert walks.state_hash() != before


def test_what_is_there_is_served(tmp_path: Path) -> None:
    """Whatever the bound is by now."""
    path = tmp_path / "a.unfog"
    with unfog.live.open(path) as store:
        store.problem("walks", context=coordinates(20), arms=arms(20), agent="unfog").add_shadow("naive")
    with pytest.MonkeyPatch.context() as patch, unfog.live.open(path) as store:
        patch.setattr(config, "MOST", 1)
        assert store.problem("walks").decide(dict.fromkeys(coordinates(20), 1.0)).number == 0
        assert store.replay(verify=True)["walks"].same


@pytest.mark.parametrize(
    ("agent", "rewards"),
    [
        ("unfog", "numeric"),
        ("late", "numeric"),
        ("unfog-toptwo", "numeric"),
        ("adaptive", "binary"),
        ("alg1", "binary"),
    ],
)
def test_the_estimate_is_about_what_is_taken(store: Store, agent: str, rewards: str) -> None:
    """Of arrays: no less than half of what is taken at a time, and no more than five times that."""
    d, names = 40, coordinates(40)
    tracemalloc.start()
    try:
        walks = store.problem(
            "walks", context=names, arms=arms(20), agent=agent, rewards=rewards, channel=channel(d), seed=1
        )
        for _ in range(2):
            walks.reward(walks.decide(dict.fromkeys(names, 0.5)).id, 1.0)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    runner = store.processor.cache.get("walks").runner
    assert most / 2 < config.bytes_needed(runner.agent, runner.known) < 5 * most


def test_arms_that_come_with_decisions_need_features_with_numbers(store: Store) -> None:
    with pytest.raises(InputError, match="arm_size"):
        store.problem("walks", context=["x", "y"], arm_size=2)
