"""Bad terms of a live problem, and other terms for one that is there, are refused by the field."""

import linecache
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.live.ground import CHANNEL, Hand, opened, problem
from tests.live.nonsense import JUNK, refusal
from unfog.live.config import FIELDS
from unfog.validation import InputError


def test_terms(tmp_path: Path) -> None:
    """Whatever a field is given, the problem is made, or refused by that field, and then there is none."""
    for field in FIELDS:
        (tmp_path / field).mkdir()
        held(tmp_path / field, field)


def held(path: Path, field: str) -> None:
    with opened(path) as store:
        refused = 0
        for i, value in enumerate([*JUNK, "no_such_module:map", "os:sep", {"context_mean": 0}]):
            told: dict[str, Any] = {"channel": None} if field == "context" else {}
            given = {"name": f"p{i}", **told, field: value}
            error = refusal(partial(problem, store, **given))
            if error is not None:
                refused += 1
                also = ("arms",) if field == "features" else ()  # of a map of one's own arms have vectors
                assert error.field.split(".")[0].split("[")[0] in (field, *also), error
                assert f"p{i}" not in store.names()
        assert refused > 0.6 * len(JUNK)


@pytest.mark.parametrize("value", [1e30, 1e-30])
def test_a_standard_deviation_whose_square_is_out_of_range(tmp_path: Path, value: float) -> None:
    with opened(tmp_path) as store, pytest.raises(InputError, match=r"^reward_sd: .* from 1e-25 to 1e\+25"):
        problem(store, reward_sd=value)


def test_other_terms(tmp_path: Path) -> None:
    """Each field as it was, or refused by its name."""
    first: dict[str, Any] = {
        "reward_window": "30m",
        "reward_range": (-1, 1),
        "default_reward": 0.0,
        "reward_aggregation": "mean",
    }
    other: dict[str, Any] = {
        "context": ["x", "z"],
        "arms": ["a", "b"],
        "arm_size": 2,
        "features": "product",
        "rewards": "binary",
        "reward_sd": 2.0,
        "reward_range": (-1, 2),
        "prior_mean": 1.0,
        "prior_cov": 2.0,
        "channel": {**CHANNEL, "noise_cov": 1.0},
        "standardise": False,
        "agent": "naive",
        "seed": 12,
        "epsilon": 0.1,
        "reward_window": "31m",
        "default_reward": 0.5,
        "update": "immediate",
        "reward_aggregation": "sum",
        "context_window": None,
    }
    assert list(other) == list(FIELDS)
    with opened(tmp_path) as store:
        live = problem(store, **first)
        before = live.state_hash()
        assert problem(store, **first).state_hash() == store.problem("p").state_hash() == before
        for field, value in other.items():
            with pytest.raises(InputError) as caught:
                store.problem("p", **{field: value})
            assert caught.value.field == field
        misspelt: dict[str, Any] = {"reward_sds": 2.0}
        with pytest.raises(InputError, match=r"^reward_sds: no such field \(did you mean 'reward_sd'\?\)"):
            store.problem("p", **misspelt)
        assert len(live.events()) == 1


@pytest.mark.parametrize("how", ["sum", "mean"])
def test_rewards_of_0_or_1_do_not_add_up(tmp_path: Path, how: str) -> None:
    with opened(tmp_path, Hand()) as store:
        told = {"rewards": "binary", "reward_window": "10m", "update": "at_close"}
        with pytest.raises(InputError, match=rf"^reward_aggregation: '{how}'; allowed: one of which"):
            problem(store, reward_aggregation=how, **told)
        assert problem(store, reward_aggregation="max", **told).decide([1, 2]).number == 0


def test_the_order_of_arms_is_part_of_the_terms(tmp_path: Path) -> None:
    """Priors of theta go by it."""
    with opened(tmp_path, Hand()) as store:
        problem(store, arms=["a", "b"])
        with pytest.raises(InputError, match=r"^arms: "):
            problem(store, arms=["b", "a"])


def test_code_that_has_changed_makes_no_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is noticed by whoever asks for the problem first, not only by `store.problem`."""
    monkeypatch.syspath_prepend(tmp_path)
    code = "from unfog.features import per_arm as found\n"
    (tmp_path / "maps_of_mine.py").write_text(code)
    with opened(tmp_path, Hand()) as store:
        problem(store, features="maps_of_mine:found", arms={"a": [0.0, 0.0], "b": [0.0, 0.0]}).decide([1, 2])
        store.processor.log.discard("p")
    (tmp_path / "maps_of_mine.py").write_text(code + "# other code\n")
    sys.modules.pop("maps_of_mine")
    linecache.clearcache()
    with opened(tmp_path, Hand()) as store, pytest.raises(InputError, match=r"^features: .* has changed"):
        store.replay()
