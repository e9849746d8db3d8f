"""Worlds in a spec: names of feature maps and their aliases, and the channel's fields in every kind."""

import tomllib
from typing import Any

import numpy as np
import pytest

import unfog
from tests.each import each
from unfog.features import MapBuilder
from unfog.lab.prepare import _completed
from unfog.lab.spec import DEFAULTS, SHARED, Spec, build_problem, describe, parse, to_toml
from unfog.simulation import play
from unfog.validation import InputError

SINES: MapBuilder = unfog.features.quadrature(lambda action, context: np.sin(action * context), 2)
SMALL = {"kind": "gaussian", "dim": 2, "actions": 3}


def complete(data: dict[str, Any]) -> Spec:
    """A spec with its problem built and written out; data are not needed for it."""
    spec = parse(data)
    return spec.model_copy(update={"problem": _completed(spec, build_problem(spec.problem))})


def test_a_sweep_over_features_keeps_the_names_it_was_given() -> None:
    swept = parse(
        {"problem": SMALL, "run": {"agents": ["alg1"]}, "sweep": {"features": ["product", "per_arm"]}}
    )
    assert [suffix for suffix, _ in swept.settings()] == [" features=product", " features=per_arm"]


def test_an_importable_builder_makes_a_spec() -> None:
    fields = {**SMALL, "features": f"{__name__}:SINES"}
    spec = complete({"problem": fields, "run": {"agents": ["alg1"], "rounds": 5, "trials": 2}})
    assert spec.problem["features"] == f"{__name__}:SINES"
    again = complete(tomllib.loads(to_toml(spec)))
    assert again == spec
    made = unfog.GaussianProblem(dim=2, actions=3, features=SINES)
    assert describe(made) is None
    right = play(made, ["alg1"], rounds=5, trials=2)
    assert np.array_equal(unfog.run(again)["regret"].values, right.values["regret"])


@each("features", ["quadrature", "nowhere:thing", "cubic"])
def test_features_that_are_none_are_refused_by_their_table(features: str) -> None:
    with pytest.raises(InputError, match=r"^problem\.features: "):
        complete({"problem": {**SMALL, "features": features}})


def test_an_arm_of_its_own_in_a_spec() -> None:
    spec = complete({"problem": {**SMALL, "features": "per_arm", "prior_cov": [1.0, 0.5, 0.5]}})
    problem = build_problem(complete(tomllib.loads(to_toml(spec))).problem)
    assert problem.knowledge().prior_cov.shape == (3, 3, 3)
    assert np.isfinite(play(problem, ["alg1", "unfog"], rounds=9, trials=2).values["regret"]).all()


ODD: dict[str, dict[str, Any]] = {
    "airquality": {
        "revealed": 0.02,
        "reveal_delay": 3,
        "missing": 0.2,
        "drift_cov": [0.1, 0.1, 0.1, 0.2],
        "prior_contexts": 90,
    },
    "movielens": {
        "missing": 0.3,
        "drift_cov": 0.01,
        "drift_rounds": 50,
        "assumed_noise_cov": 0.2,
        "reveal_delay": 1,
    },
    "gaussian": {"tails": 4, "revealed": 0.5, "prior_contexts": 50, "prior_noisy_contexts": 80},
    "logistic": {"missing": 0.3, "assumed_noise_cov": 0.5, "trouble_from": 7},
}


@each("kind", ODD)
def test_every_kind_has_the_fields_of_every_world(kind: str) -> None:
    assert set(list(DEFAULTS[kind])[-len(SHARED) :]) == SHARED
    stand_in = {"ratings": "stand-in"} if kind == "movielens" else {}
    spec = complete({"problem": {"kind": kind, **stand_in, **ODD[kind]}, "run": {"agents": ["alg1"]}})
    assert {field: spec.problem[field] for field in ODD[kind]} == ODD[kind]
    assert complete(tomllib.loads(to_toml(spec))) == spec
    assert describe(build_problem(spec.problem)) == spec.problem


@each("field, value", [("tails", 5), ("assumed_noise_cov", 2.0)])
def test_recorded_errors_have_no_law_to_change(field: str, value: float) -> None:
    with pytest.raises(InputError, match=rf"^problem\.{field}: {value}; allowed: 0 where errors come from"):
        complete({"problem": {"kind": "airquality", field: value}})
    complete({"problem": {"kind": "airquality", "channel": "gaussian", field: value}})


@each(
    "data, complaint",
    [
        ({"run": {"agents": "alg1"}}, r'run\.agents: \'alg1\'; allowed: a list of names, as in \["alg1"\]'),
        ({"run": {"agents": [1]}}, r"run\.agents\.0: 1; allowed: text in quotes"),
        ({"run": {"rounds": 1.5}}, r"run\.rounds: 1\.5; allowed: a whole number"),
        ({"run": {"rounds": "x"}}, r"run\.rounds: 'x'; allowed: a whole number"),
        ({"run": {"decompose": 1}}, r"run\.decompose: 1; allowed: true or false"),
        ({"run": {"target_se": "x"}}, r"run\.target_se: 'x'; allowed: a number"),
        ({"run": [1]}, r"run: \[1\]; allowed: a table: \[run\]"),
        ({"problem": 1}, r"problem: 1; allowed: a table: \[problem\]"),
        ({"title": 1}, r"title: 1; allowed: text in quotes"),
    ],
)
def test_what_has_the_wrong_type_is_refused_in_words_of_toml(data: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=f"^{complaint}$"):
        parse({"problem": {"kind": "gaussian"}, **data})
