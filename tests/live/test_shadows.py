"""Shadows never stop the problem they watch, and can leave."""

from pathlib import Path

import pytest

from tests.live.ground import Hand, opened, problem
from unfog.validation import InputError


def test_a_shadow_that_cannot_follow_sits_out(tmp_path: Path) -> None:
    with opened(tmp_path, Hand()) as store:
        live = problem(store, "p")
        live.decide([1.0, 2.0], unit="ann")
        live.add_shadow("coupled")  # has one bias for all units
        live.add_shadow("temporal")  # takes no time that goes back
        assert set(live.decide([1.0, 2.0], unit="ann", measured_at=5.0).shadows) == {"coupled", "temporal"}
        assert set(live.decide([1.0, 2.0], unit="bob", measured_at=9.0).shadows) == {"temporal"}
        made = live.decide([1.0, 2.0], unit="ann", measured_at=4.0)
        assert set(made.shadows) == {"coupled"}
        live.reward(made.id, 1.0)
        assert store.processor.cache.get("p").runners["coupled"].learnt == 1
        assert store.processor.cache.get("p").runners["temporal"].learnt == 0
        assert store.replay(verify=True)["p"].same


def test_the_noise_of_a_reading_is_the_business_of_who_is_obeyed(tmp_path: Path) -> None:
    with opened(tmp_path, Hand()) as store:
        live = problem(store, "p", agent="temporal")
        live.add_shadow("unfog")
        live.add_shadow("coupled")
        assert live.decide([1.0, 2.0], noise_cov=[0.1, 0.2]).shadows.keys() == {"unfog"}
        other = problem(store, "q", agent="coupled")
        with pytest.raises(InputError, match=r"^noise_cov: given for one reading"):
            other.decide([1.0, 2.0], noise_cov=[0.1, 0.2])
