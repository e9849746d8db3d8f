"""Who plays what, and who is held against whom."""

from dataclasses import replace

from tests.each import each
from unfog.agents.baselines import BASELINES
from unfog.agents.catalogue import AGENTS, EVERY
from unfog.lab.baselines.problems import BENCHMARKS, OURS, PAPER, pace, why_not
from unfog.lab.spec import build_problem
from unfog.worlds.synthetic import GaussianProblem, LogisticProblem

SMALL = GaussianProblem(dim=2, actions=4)
BINARY = LogisticProblem(dim=2, actions=4)


def test_the_places_are_those_of_the_catalog_with_one_value() -> None:
    assert len(BENCHMARKS) == 10
    for name, place in BENCHMARKS.items():
        spec = place.spec()
        assert (spec.name, spec.sweep, spec.run.trials) == (name, {}, place.trials)
        assert place.revealed in ("wanted", "none", "some", "all")
    told = {name: BENCHMARKS[name].spec().problem for name in BENCHMARKS}
    assert (told["heavy-tails"]["tails"], told["drift"]["drift_cov"], told["missing"]["missing"]) == (
        3,
        0.005,
        0.3,
    )
    shares = [told[f"airquality-{shown}"]["revealed"] for shown in ("none", "some", "all")]
    assert shares == [0.0, 0.1, 1.0]
    assert build_problem(told["drift"]).has_bias


@each(
    "place, agent, found",
    [
        ("fig1-gaussian", "alg1", [("unfog", "same")]),
        ("fig1-gaussian", "alg2", [("unfog-delayed", "same")]),
        ("fig1-gaussian", "oracle", [("unfog", "more"), ("unfog-oracle", "same")]),
        ("fig1-gaussian", "kk-observed", [("unfog-delayed", "more")]),
        ("airquality-none", "alg1", [("unfog", "same")]),
        ("airquality-some", "alg1", [("late", "less")]),
        ("airquality-some", "late", [("late", "same")]),
        ("airquality-all", "alg1", [("unfog-delayed", "less")]),
        ("airquality-all", "alg2", [("unfog-delayed", "same")]),
    ],
)
def test_who_is_held_against_whom(place: str, agent: str, found: list[tuple[str, str]]) -> None:
    assert BENCHMARKS[place].references(EVERY[agent]) == found


def test_why_one_cannot_play() -> None:
    late = GaussianProblem(dim=2, actions=4, reveal_delay=3)
    assert why_not("alg1", SMALL) == ""
    assert why_not("alg2", late) == "it awaits every true context, and not all are shown"
    assert why_not("coupled", BINARY) == "it has no learner for bernoulli rewards"
    assert "sample of contexts" in why_not("bayes-oracle", SMALL)
    assert why_not("late", late) == ""


def test_a_setting_that_does_not_fit_the_contexts_is_named() -> None:
    assert why_not("polinucb:before=1", SMALL) == ""
    assert why_not("polinucb:before=2", SMALL) == "before: 2; allowed: less than 2, the dimension of contexts"
    assert why_not("oracle", SMALL) == ""


def test_who_is_told_the_bias_needs_one() -> None:
    none = type("None", (GaussianProblem,), {"has_bias": False})
    assert why_not("oracle", none(dim=2, actions=4)) == "it must be told the bias, and this world has none"


def test_every_baseline_and_all_of_ours_can_play_where_they_are_held() -> None:
    for name in (*BASELINES, *PAPER, *OURS):
        problem = SMALL if EVERY[name].learner.rewards == "gaussian" else BINARY
        assert why_not(name, problem) == "", name


def test_steps_take_long() -> None:
    assert pace(AGENTS["alg1"].for_rewards("bernoulli")) == "slow"
    assert pace(AGENTS["alg1"]) == "quick"
    assert pace(AGENTS["unfog"].for_rewards("bernoulli")) == "quick"
    assert pace(replace(AGENTS["alg1"], name="feelgood:steps=3")) == "dear"
