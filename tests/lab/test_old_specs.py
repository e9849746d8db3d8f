"""Specs as older versions stored them, in words of their time, still mean the same run."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

import unfog
from unfog.lab.prepare import prepare
from unfog.lab.spec import load, parse, to_toml

# Two spec.toml of run folders, to the letter, and the final regrets that were kept beside them.
GAUSSIAN = """\
name = "small"
title = ""

[problem]
kind = "gaussian"
dim = 2
actions = 5
features = "linear"
noise_cov = [0.5, 3.0]
action_law = "normal"
context_mean = 0.0
context_cov = 1.0
bias_cov = 1.1
prior_mean = 0.0
prior_cov = 0.01
actual_noise_cov = 0.0
tails = 0
missing = 0.0
drift_cov = 0.0
drift_rounds = 1000
revealed = 1.0
late = 0
reward_var = 2.0

[run]
rounds = 12
trials = 4
seed = 0
agents = ["alg1", "unfog-ucb", "alg1-exact-smoothing"]
decompose = true
engine = "numpy"
"""
LOGISTIC = """\
name = "clicks"
title = ""

[problem]
kind = "logistic"
dim = 2
actions = 5
features = "linear"
action_law = "normal"
context_mean = 0.0
context_cov = 1.0
noise_cov = 2.0
bias_cov = 2.5
prior_mean = 0.0
prior_cov = 1.0
actual_noise_cov = 0.0
tails = 0
missing = 0.0
drift_cov = 0.0
drift_rounds = 1000
revealed = 1.0
late = 0

[run]
rounds = 8
trials = 3
seed = 0
agents = ["alg1", "alg1-online", "unfog-online:marginal=true-ids"]
decompose = true
engine = "numpy"
"""
KEPT = {
    GAUSSIAN: [
        [0.5975945330962011, 0.4296309511908011, 2.678489002977093, 2.809126166457132],
        [0.45749928913245824, 0.3683034068474451, 2.759181283301584, 1.7794307753433265],
        [0.5975945330962011, 0.29332292715007635, 2.678489002977093, 2.93899449169312],
    ],
    LOGISTIC: [
        [1.6818745057441418, 0.22697948866427348, 2.003808881251344],
        [1.4941992786963194, 0.38455821759085157, 1.228130518670761],
        [0.3580188598830031, 0.1713998927843624, 1.6574176792087003],
    ],
}


@pytest.mark.parametrize("text", KEPT, ids=["gaussian", "logistic"])
def test_a_stored_spec_is_the_run_it_was(text: str, tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(text, "utf-8")
    data = unfog.run(tmp_path / "spec.toml")
    np.testing.assert_allclose(data["regret"].values[:, :, -1], KEPT[text], rtol=1e-9)
    told = tomllib.loads(text)["run"]["agents"]
    assert list(data["agent"].values) == told  # under the names they were given
    stored = prepare(load(tmp_path / "spec.toml")).spec
    assert stored.problem["features"] == "product"  # what is stored from now on says the present words
    assert stored.run.agents == told
    assert parse(tomllib.loads(to_toml(stored))) == stored


def test_old_names_of_learners_are_the_learners() -> None:
    spec = parse(tomllib.loads(LOGISTIC))
    old, new = (
        prepare(spec.model_copy(update={"run": spec.run.model_copy(update={"agents": [name]})})).work.jobs[0]
        for name in ("unfog-online:marginal=true", "unfog-adf:marginal=true")
    )
    assert old.agents[0].same_as(new.agents[0])
    assert old.agents[0].name == "unfog-online:marginal=true"


def test_one_agent_by_its_old_and_its_new_name_is_named_twice() -> None:
    spec = parse(tomllib.loads(LOGISTIC.replace('"unfog-online:marginal=true-ids"', '"alg1-adf"')))
    with pytest.raises(unfog.InputError, match="'alg1-adf' is 'alg1-online' by another name"):
        prepare(spec)
