"""One budget for all: what is tried, and what is taken."""

import numpy as np
import pytest

from tests.each import each
from unfog.agents.baselines import BASELINES
from unfog.agents.catalogue import EVERY, Catalogue
from unfog.lab.baselines import suite
from unfog.lab.baselines.problems import OURS


@each("name", [*BASELINES, *OURS])
def test_all_have_six_or_seven_values_or_none_and_every_one_is_an_agent(name: str) -> None:
    setting, values = suite.setting_of(name)
    assert bool(setting) is bool(values)
    for spelled in suite.candidates(name):
        assert Catalogue(EVERY[name].learner.rewards)[spelled].name == spelled
    assert suite.candidates(name)[0] == name  # as published
    assert len(suite.candidates(name)) in ((6, 7) if values else (1,))
    assert (
        name in BASELINES or len(suite.candidates(name)) == 6
    )  # ours has no more than any baseline with a setting


def test_a_published_value_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "LEVELS", (0.5, 1.4))
    assert suite.candidates("unfog") == ["unfog", "unfog:level=0.5"]
    assert suite.candidates("alg1") == ["alg1"]


def test_the_least_regret_is_taken_and_the_published_one_of_equals() -> None:
    regrets = {name: np.full(3, 5.0) for name in suite.candidates("linucb")}
    assert suite.chosen(["linucb"], regrets) == {"linucb": "linucb"}
    regrets["linucb:alpha=0.2"] = np.array([1.0, 9.0, 2.0])
    assert suite.chosen(["linucb"], regrets) == {"linucb": "linucb:alpha=0.2"}
    assert suite.setting("linucb", "linucb:alpha=0.2") == "alpha=0.2"
    assert suite.setting("linucb", "linucb") == "as published"
