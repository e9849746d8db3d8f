"""Bad terms of a live problem, and other terms for one that is there, are refused by the field."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.live.ground import CHANNEL, opened, problem
from tests.live.nonsense import JUNK, refusal
from unfog.inputs import InputError

TERMS = (
    *("context", "arms", "arm_size", "features", "rewards", "reward_var", "reward_range", "prior_mean"),
    *("prior_cov", "channel", "standardise", "agent", "seed", "floor", "wait", "default_reward", "learn"),
    *("combine", "reveal_within"),
)


@pytest.mark.parametrize("field", TERMS)
def test_terms(tmp_path: Path, field: str) -> None:
    """Whatever a field is given, the problem is made, or refused by that field, and then there is none."""
    with opened(tmp_path) as store:
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


def test_other_terms(tmp_path: Path) -> None:
    """Each field as it was, or refused by its name."""
    first: dict[str, Any] = {"wait": "30m", "reward_range": (-1, 1), "default_reward": 0.0, "combine": "mean"}
    other: dict[str, Any] = {
        "context": ["x", "z"],
        "arms": ["a", "b"],
        "arm_size": 2,
        "features": "product",
        "rewards": "bernoulli",
        "reward_var": 2.0,
        "reward_range": (-1, 2),
        "prior_mean": 1.0,
        "prior_cov": 2.0,
        "channel": {**CHANNEL, "noise_cov": 1.0},
        "standardise": False,
        "agent": "naive",
        "seed": 12,
        "floor": 0.1,
        "wait": "31m",
        "default_reward": 0.5,
        "learn": "at_once",
        "combine": "sum",
        "reveal_within": None,
    }
    assert set(other) == set(TERMS)
    with opened(tmp_path) as store:
        live = problem(store, **first)
        before = live.fingerprint()
        assert problem(store, **first).fingerprint() == store.problem("p").fingerprint() == before
        for field, value in other.items():
            with pytest.raises(InputError) as caught:
                store.problem("p", **{field: value})
            assert caught.value.field == field
        with pytest.raises(InputError, match="colour: no such field"):
            store.problem("p", colour="red")
        assert len(live.events()) == 1
