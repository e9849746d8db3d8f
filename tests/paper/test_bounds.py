"""The study behind `unfog bounds`: its regret is a run's, its bounds are the theorems'."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import unfog
from tests.each import each
from tests.lab.charts import inside
from unfog.lab.run import run
from unfog.lab.spec import Spec, build_problem, load, parse
from unfog.maths.random import RoundDraws
from unfog.paper import bounds as studies
from unfog.paper.bounds import (
    BOUNDED,
    Growth,
    Panel,
    Study,
    _growth,
    agents_with_bound,
    case_of,
    measure_mismatch,
    side_by_side,
    space_rounds,
    study,
)
from unfog.paper.bounds_report import PANELS, THEORY, figure, summary, table
from unfog.simulation.job import truth_draws
from unfog.theory.bounds import Bound, at_random, escape, exponent, lemma_1, slope, theorem_1, theorem_2
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem

ROUNDS, TRIALS, SEED = 64, 6, 3
PROBLEM: dict[str, Any] = {
    "kind": "gaussian",
    "dim": 3,
    "actions": 5,
    "action_law": "uniform",
    "features": "product",
    "context_mean": 0.1,
    "context_cov": 0.06,
    "noise_cov": 0.05,
    "bias_cov": 0.1,
    "reward_var": 1.0,
    "prior_cov": 3 / ROUNDS,
}
RUN = {"rounds": ROUNDS, "trials": TRIALS, "seed": SEED}
AGENTS = ["kk", *BOUNDED]


def spec_of(sweep: dict[str, list[Any]] | None = None, **changes: Any) -> Spec:
    return parse({"problem": {**PROBLEM, **changes}, "run": {**RUN, "agents": AGENTS}, "sweep": sweep or {}})


@pytest.fixture(scope="module")
def found() -> Study:
    return study(spec_of({"dim": [8, 2, 4]}))


def of(panel: Panel | None, agent: str) -> Growth:
    assert panel is not None
    return next(growth for growth in panel.agents if growth.agent == agent)


def test_the_regret_over_rounds_is_that_of_a_run(found: Study) -> None:
    data = run(spec_of())
    assert [growth.agent for growth in found.fixed.agents] == list(BOUNDED)
    for growth in found.fixed.agents:
        curves = data.sel(agent=growth.agent, round=growth.points.astype(int))
        for loss in ("regret", "cb", "ee1", "ee2"):
            np.testing.assert_array_equal(growth.losses[loss], curves[loss].values)
        np.testing.assert_allclose(
            growth.losses["cb"] + growth.losses["ee"], growth.losses["regret"], atol=1e-9
        )
        assert growth.points[[0, -1]].tolist() == [10, ROUNDS]


def test_tied_horizons_keep_the_prior_times_the_horizon(found: Study) -> None:
    assert found.tied is not None
    assert [growth.agent for growth in found.tied.agents] == ["alg1", "alg1-exact"]
    growth = of(found.tied, "alg1")
    assert growth.points.tolist() == [4, 8, 16, 32, 64]
    for place, horizon in enumerate((4, 8, 16, 32, 64)):
        problem = GaussianProblem(**{**_fields(), "prior_cov": 3 / horizon})
        data = unfog.run(problem, rounds=horizon, trials=TRIALS, seed=SEED, agents=["alg1"])
        np.testing.assert_allclose(
            growth.losses["regret"][:, place], data["regret"].values[0, :, -1], rtol=1e-9
        )
        direct = at_random(case_of(problem, TRIALS, SEED), horizon)
        assert growth.bounds["at random"].total[place] == pytest.approx(float(direct.total))


def test_a_sweep_is_a_run_for_each_value_in_order(found: Study) -> None:
    growth = of(found.swept, "alg2")
    assert found.swept is not None
    assert (found.swept.axis, growth.points.tolist()) == ("dim", [2, 4, 8])
    for place, dim in enumerate((2, 4, 8)):
        problem = GaussianProblem(**{**_fields(), "dim": dim})
        data = unfog.run(problem, rounds=ROUNDS, trials=TRIALS, seed=SEED, agents=["alg2"])
        np.testing.assert_array_equal(growth.losses["regret"][:, place], data["regret"].values[0, :, -1])
        bound = theorem_2(case_of(problem, TRIALS, SEED), ROUNDS)
        assert growth.bounds["corrected"].total[place] == pytest.approx(float(bound.total))


def _fields() -> dict[str, Any]:
    return {field: value for field, value in PROBLEM.items() if field != "kind"}


def test_each_agent_has_the_bound_of_its_theorem_and_denoiser(found: Study) -> None:
    case = case_of(build_problem(PROBLEM), TRIALS, SEED)
    theorems: dict[str, tuple[Callable[..., Bound], str]] = {
        "alg1": (theorem_1, "plugin"),
        "alg1-exact": (theorem_1, "exact"),
        "alg2": (theorem_2, "plugin"),
        "alg2-exact": (theorem_2, "exact"),
    }
    for agent, (theorem, denoiser) in theorems.items():
        growth = of(found.fixed, agent)
        for version in ("printed", "corrected"):
            direct = theorem(case, growth.points, version, denoiser=denoiser)
            bound = growth.bounds[version]
            assert (bound.name, bound.broken, list(bound.parts)) == (direct.name, (), list(direct.parts))
            np.testing.assert_array_equal(bound.total, direct.total)
    plugin, exact = (of(found.fixed, agent).bounds["corrected"].total for agent in ("alg1", "alg1-exact"))
    assert (plugin > exact).all()


def test_growth_is_fitted_over_the_last_decade_of_rounds_and_over_all_runs(found: Study) -> None:
    growth = of(found.fixed, "alg2")
    late = growth.points >= ROUNDS / 10
    right = exponent(growth.points[late], growth.losses["regret"][:, late])
    assert growth.exponent == pytest.approx(right)
    for kind, bound in growth.bounds.items():
        assert growth.slopes[kind] == pytest.approx(float(slope(growth.points[late], bound.total[late])))
    tied = of(found.tied, "alg1")
    assert tied.exponent == pytest.approx(exponent(tied.points, tied.losses["regret"]))
    assert tied.slopes["at random"] == pytest.approx(0.5)
    assert of(found.fixed, "alg1").slopes["at random"] == pytest.approx(1.0)


def test_an_exponent_may_have_no_interval() -> None:
    """The first point's mean is above zero thanks to one trial alone."""
    regret = np.array([[0.0, 1.0, 2.0], [0.0, 1.5, 2.0], [0.3, 1.0, 3.0]])
    growth = _growth("alg1", np.array([1.0, 2.0, 4.0]), {"regret": regret}, {}, np.ones(3, bool))
    assert growth.exponent is not None
    assert growth.interval() == (growth.exponent.mean, None)


def test_a_caveat_says_how_likely_features_are_too_large(found: Study) -> None:
    told = summary(found, None, 1.0)
    chances = {kind: bound["escape"] for kind, bound in told["swept"]["agents"]["alg2"]["bounds"].items()}
    worst = max(escape(case_of(build_problem({**PROBLEM, "dim": d}), TRIALS, SEED)) for d in (2, 4, 8))
    assert chances == {"printed": worst, "corrected": worst, "at random": 0}
    wide = table({**summary(study(spec_of(prior_cov=1.0)), None, 1.0), "figures": []})
    chance = escape(case_of(build_problem({**PROBLEM, "prior_cov": 1.0}), TRIALS, SEED))
    assert "caveat: the elliptical potential is proved where |phi|^2 lambda/sigma^2 <= 2.51; a round" in wide
    assert f"theorem 2 over round: {chance:.1g}" in wide
    narrow = table({**summary(study(spec_of(prior_cov=1e-4)), None, 1.0), "figures": []})
    assert "caveat" not in narrow


def test_a_longer_curve_leaves_its_early_rounds_out_of_the_fit() -> None:
    growth = study(load("bounds-delayed", {"rounds": 400, "trials": 2})).fixed.agents[0]
    assert growth.points[0] == 10
    assert growth.points[growth.fitted].min() >= 40 > growth.points[~growth.fitted].max()


def test_intervals_are_student_s() -> None:
    rng = np.random.default_rng(0)
    losses = {"regret": 1 + rng.random((4, 3))}
    growth = _growth("alg1", np.array([1.0, 2.0, 4.0]), losses, {}, np.ones(3, bool))
    mean, half = growth.band()
    assert half is not None
    np.testing.assert_allclose(mean, losses["regret"].mean(0))
    np.testing.assert_allclose(half, 3.182446305 * losses["regret"].std(0, ddof=1) / 2)
    assert growth.exponent is not None
    assert growth.interval() == pytest.approx((growth.exponent.mean, 3.182446305 * growth.exponent.se))


def test_the_case_of_a_map_that_is_not_linear() -> None:
    problem, trials = GaussianProblem(dim=2, actions=4), range(5)
    case = case_of(problem, 5, 1)
    assert (case.linear, case.arms, case.size) == (None, 4, 6)
    draws = truth_draws(1, trials, problem.truth_draws())
    truth = problem.truth(draws)
    context = problem.emit(truth, RoundDraws(1, trials, "rounds", 5).next(32).swapaxes(0, 1)).context
    a, c = draws["actions"], context[:, :, None]
    phi = np.concat(np.broadcast_arrays(a**2, c**2, a * c), -1)
    assert case.feature_norm == pytest.approx(float(np.sqrt((phi**2).sum(-1).max(-1).mean())))


def test_a_sampled_mean_square_is_no_assumption() -> None:
    """However small the features: of maps that are not linear no largest norm is known."""
    case = case_of(GaussianProblem(dim=2, actions=4), 5, 1)._replace(feature_norm=0.1)
    for agent in BOUNDED:
        [broken] = [c for c in BOUNDED[agent].bounds(case, 1)["corrected"].broken if "|phi|" in c.asks]
        assert broken.actual == "root mean square 0.1; no largest norm is known"


def test_the_experiments_meet_every_condition() -> None:
    for name, agents in (("bounds-unobserved", "alg1"), ("bounds-delayed", "alg2")):
        spec = load(name)
        full = spec.run.rounds
        assert spec.run.agents == [agents, f"{agents}-exact"]
        for suffix, fields in [("", spec.problem), *spec.settings()]:
            case = case_of(build_problem(fields), 100, spec.run.seed)
            for bounds in (BOUNDED[agent].bounds(case, [16, full]) for agent in spec.run.agents):
                assert all(bound.broken == () for bound in bounds.values()), suffix


def test_conditions_that_do_not_hold_are_named() -> None:
    found = study(load("fig1-gaussian", {"rounds": 20, "trials": 2}))
    first = of(found.fixed, "alg1")
    asks = {condition.asks for condition in first.bounds["corrected"].broken}
    assert {"Assumption 1: |phi| <= 1", "phi(a, c) = G(a) c", "m = d"} <= asks
    assert not first.bounds["corrected"].holds.any()
    assert found.swept is None
    told = table({**summary(found, None, 1.0), "figures": []})
    assert "conditions that do not hold (*):" in told
    assert "phi(a, c) = G(a) c (found: another feature map): theorem 1, printed; theorem 1, corrected" in told


def test_bounds_side_by_side_keep_what_holds_where() -> None:
    wide, narrow = (case_of(build_problem({**PROBLEM, "prior_cov": v}), 2, 0) for v in (0.5, 0.01))
    each = [theorem_1(case, t, strict=False) for case, t in ((narrow, 64), (wide, 64), (wide, 2))]
    both = side_by_side(each)
    assert both.holds.tolist() == [True, False, False]
    held = {condition.asks: condition.holds.tolist() for condition in both.broken}
    assert held == {"lambda/sigma^2 <= d/T": [True, False, True], "d/T <= 1": [True, True, False]}
    assert both.total.tolist() == [float(one.total) for one in each]


def test_what_has_no_bound_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"^problem: bernoulli rewards; allowed: rewards with Gaussian noise"
    ):
        study(load("fig1-logistic"))
    with pytest.raises(InputError, match=r"^problem: a prior made of blocks"):
        study(parse({"problem": {"kind": "movielens"}, "run": RUN}))

    class Unbiased(GaussianProblem):
        has_bias = False

    with pytest.raises(InputError, match=r"^problem: a world without a true bias"):
        case_of(Unbiased(), 2, 0)
    spec = spec_of().model_copy(update={"run": spec_of().run.model_copy(update={"agents": ["kk"]})})
    with pytest.raises(
        InputError, match=r"^run.agents: kk; allowed: one or more of alg1, alg2, alg1-exact, alg2-exact$"
    ):
        agents_with_bound(spec)


def test_progress_is_one_count_over_all_runs() -> None:
    seen: list[tuple[int, int]] = []
    study(spec_of({"dim": [2, 3]}), progress=lambda done, total: seen.append((done, total)))
    everything = TRIALS * (4 * ROUNDS + 2 * (4 + 8 + 16 + 32 + 64) + 2 * 4 * ROUNDS)
    assert {total for _, total in seen} == {everything}
    done = [count for count, _ in seen]
    assert done == sorted(done)
    assert done[-1] == everything


@each("sweep", [{"action_law": ["normal", "uniform"]}, {"dim": [3]}])
def test_a_sweep_without_numbers_to_grow_with_is_left_out(sweep: dict[str, list[Any]]) -> None:
    assert study(spec_of(sweep)).swept is None


def test_places_are_spaced_in_logarithms() -> None:
    places = space_rounds(np.arange(1, 10_001))
    assert (len(places), places[0], places[-1]) == (16, 9, 9999)
    np.testing.assert_allclose(np.diff(np.log(places + 1.0)), np.log(1000) / 15, rtol=0.1)
    assert space_rounds(np.arange(1, 4)).tolist() == [2]


def test_no_regret_has_no_exponent() -> None:
    found = study(spec_of(actions=1))
    growth = found.fixed.agents[0]
    assert (growth.exponent, growth.interval(), growth.slopes["at random"]) == (None, None, None)
    assert " - " in table({**summary(found, None, 1.0), "figures": []})
    figure(found)


def test_the_measured_mismatch_takes_the_place_of_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = np.array([2, 8, 64])
    stand_in = studies.Mismatch(grid, *(np.array([0.1, 0.2, 0.3]) * factor for factor in (1, 0.1, 900, 7, 2)))
    asked: dict[str, Any] = {}

    def measure(problem: Any, **told: Any) -> studies.Mismatch:
        asked.update(told)
        return stand_in

    monkeypatch.setattr(studies, "measure", measure)
    told = measure_mismatch(spec_of(), build_problem(PROBLEM), 5)
    assert {name: asked[name] for name in ("rounds", "trials", "seed")} == {
        "rounds": 64,
        "trials": 5,
        "seed": SEED,
    }
    np.testing.assert_allclose(told.limits["printed"], 3 * grid / 4)
    np.testing.assert_allclose(told.limits["corrected"], 3 * 3 * grid / 4)
    case = case_of(build_problem(PROBLEM), TRIALS, SEED)
    direct = lemma_1(case, grid, mismatch=stand_in.total, strict=False)
    np.testing.assert_array_equal(told.lemma.total, direct.total)
    facts = summary(study(spec_of(actions=2)), told, 1.0)["mismatch"]
    np.testing.assert_allclose(facts["half_width"], 2.7764451 * stand_in.total_se)  # Student's t, 5 trials
    without = parse({"problem": PROBLEM, "run": {**RUN, "agents": ["alg2"]}})
    with pytest.raises(InputError, match=r"^mismatch: of alg2; allowed: a spec with alg1"):
        measure_mismatch(without, build_problem(PROBLEM), 5)


def test_the_figure_says_what_grows_how(found: Study) -> None:
    chart = figure(found)
    assert len(chart.axes) == len(PANELS)
    for axes, panel, symbol in zip(chart.axes, (found.fixed, found.tied, found.swept), "tTd", strict=True):
        assert panel is not None
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        legend = axes.get_legend()
        assert legend is not None
        labels = [text.get_text() for text in legend.get_texts()]
        value, half = panel.agents[0].interval() or (0, 0)
        digits = 3 if half is not None and half < 0.0095 else 2
        assert f"alg1 (Algorithm 1): ${symbol}^{{{value:.{digits}f}}}$ ± {half:.{digits}f}" in labels
        slope = panel.agents[0].slopes["corrected"]
        assert f"Theorem 1, corrected: ${symbol}^{{{slope:.2f}}}$" in labels
        assert any(label.startswith("at random, at most: ") for label in labels)
    assert inside(chart)
    note = chart.get_supxlabel()
    assert all(line in note for line in THEORY.values())
    assert f"mean of {TRIALS} trials, seed {SEED}" in note


@each(
    "signs, name",
    [([1, 1, 1], "EE1 + EE2"), ([-1, -1, -1], "−(EE1 + EE2)"), ([1, -1, 1], "|EE1 + EE2|")],
)
def test_the_figure_says_which_sign_misjudged_features_have(
    found: Study, signs: list[int], name: str
) -> None:
    growth = found.fixed.agents[0]
    losses = {**growth.losses, "ee": np.resize(signs, growth.losses["ee"].shape[1]) * np.ones((TRIALS, 1))}
    fixed = Panel("round", [growth._replace(losses=losses)])
    legend = figure(found._replace(fixed=fixed)).axes[0].get_legend()
    assert legend is not None
    assert f"{name}, alg1 (Algorithm 1)" in [text.get_text() for text in legend.get_texts()]


def test_a_bound_whose_conditions_fail_is_faint() -> None:
    chart = figure(study(spec_of(prior_cov=4.0)))
    assert "faint: a bound's conditions do not hold" in chart.get_supxlabel()
    legend = chart.axes[1].get_legend()
    assert legend is not None
    assert sum(text.get_text().endswith("(faint)") for text in legend.get_texts()) == 2
    lines = [line for line in chart.axes[1].get_lines() if not str(line.get_label()).startswith("_")]
    faint = {str(line.get_label()) for line in lines if (line.get_alpha() or 1) < 0.5}
    assert faint == {str(line.get_label()) for line in lines if str(line.get_label()).endswith("(faint)")}
