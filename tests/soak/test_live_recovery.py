"""Ten thousand events of everything that can happen, and twenty starts in the middle of them."""

from pathlib import Path

import pytest

from tests.live.played import VECTORS, terms
from tests.live.test_recovery import check, recovered


@pytest.mark.soak
@pytest.mark.parametrize("agent", ["unfog", "late", "alg2", "adaptive", "temporal", "unfog-thompson"])
def test_ten_thousand_calls(tmp_path: Path, agent: str) -> None:
    check(recovered(tmp_path, terms(agent), 10_000, 20))


@pytest.mark.soak
def test_ten_thousand_calls_with_arms_that_are_added(tmp_path: Path) -> None:
    given = terms("unfog", arms=VECTORS, features="product")
    check(recovered(tmp_path, given, 10_000, 20, grows=True), add_arm=50)


@pytest.mark.soak
@pytest.mark.parametrize("agent", ["alg1", "unfog"])
def test_two_thousand_calls_with_rewards_of_0_or_1(tmp_path: Path, agent: str) -> None:
    check(recovered(tmp_path, terms(agent, "binary"), 2000, 6))
