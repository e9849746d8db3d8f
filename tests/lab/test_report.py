"""Tables, summaries and figures against numbers computed by hand."""

from typing import Any

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.container import ErrorbarContainer
from matplotlib.lines import Line2D
from scipy import stats

import unfog
from unfog.lab import figures, report
from unfog.lab.spec import parse

AGENTS = ["alg1", "oracle", "naive"]


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    return unfog.run("fig1-gaussian", rounds=50, trials=9, agents=AGENTS, seed=2)


def test_summary_against_numpy(data: xr.Dataset) -> None:
    facts = unfog.summary(data)
    for name in AGENTS:
        values = data["regret"].sel(agent=name).isel(round=-1).values
        assert facts["agents"][name]["regret"] == pytest.approx(values.mean())
        assert facts["agents"][name]["se"] == pytest.approx(values.std(ddof=1) / 3)
    gap = (data["regret"].sel(agent="oracle") - data["regret"].sel(agent="naive")).isel(round=-1).values
    assert facts["pairs"]["oracle - naive"] == pytest.approx({"mean": gap.mean(), "se": gap.std(ddof=1) / 3})


def test_one_trial_has_no_standard_error() -> None:
    one = unfog.run("fig1-gaussian", rounds=5, trials=1, agents=["alg1", "kk"])
    assert unfog.summary(one)["agents"]["alg1"]["se"] is None
    assert "±" not in unfog.table(one).split("\n")[2]
    unfog.figure(one)


def test_table_shows_paired_differences_with_t_intervals(data: xr.Dataset) -> None:
    values = data["regret"].isel(round=-1)
    gap = (values.sel(agent="alg1") - values.sel(agent="oracle")).values
    half = stats.ttest_1samp(gap, 0).confidence_interval(0.95).high - gap.mean()
    row = next(line for line in unfog.table(data).splitlines() if line.startswith("alg1"))
    assert f"{gap.mean():+.1f} ± {half:.1f}" in row
    against = next(line for line in unfog.table(data).splitlines() if line.startswith("oracle"))
    assert against.split()[4] == "-"


def test_curves_hold_means_and_bands(data: xr.Dataset) -> None:
    curve = report.curves(data)[0]
    values = data["regret"].sel(agent="alg1").values
    np.testing.assert_allclose(curve.mean, values.mean(0))
    np.testing.assert_allclose(curve.half_width, stats.t.ppf(0.975, 8) * values.std(0, ddof=1) / 3)


def test_figure_draws_every_agent_in_a_style_of_its_own(data: xr.Dataset) -> None:
    [axes] = figures.figure(data).axes
    lines = axes.get_lines()
    assert len(lines) == len(axes.collections) == 3
    [oracle] = [line for line in lines if line.get_label() == "oracle"]
    np.testing.assert_allclose(
        np.asarray(oracle.get_ydata()), data["regret"].sel(agent="oracle").mean("trial")
    )
    greys = [0.299 * r + 0.587 * g + 0.114 * b for r, g, b in map(_rgb, lines)]
    assert len({line.get_color() for line in lines}) == 3
    assert min(abs(a - b) for i, a in enumerate(greys) for b in greys[:i]) > 0.02
    assert axes.get_xlabel()
    assert axes.get_ylabel()
    assert _legend(axes) == {"alg1 (Algorithm 1)", "oracle", "naive"}


def _legend(axes: Axes) -> set[str]:
    legend = axes.get_legend()
    assert legend is not None
    return {text.get_text() for text in legend.get_texts()}


def _rgb(line: Line2D) -> tuple[float, float, float]:
    return to_rgb(line.get_color())


def test_bands_dashes_and_the_order_of_the_legend(data: xr.Dataset) -> None:
    [axes] = figures.figure(data).axes
    drawn = sorted(report.curves(data), key=lambda curve: -curve.mean[-1])
    for line, band, curve in zip(axes.get_lines(), axes.collections, drawn, strict=True):
        heights = np.asarray(band.get_paths()[0].vertices)[:, 1]
        assert heights.max() == pytest.approx((curve.mean + curve.half_width).max())
        assert (curve.half_width[-1]) > 0
        assert np.array_equal(np.asarray(line.get_ydata()), curve.mean)
    # matplotlib keeps a dash pattern in a private field; a solid line has none
    assert len({str(line._dash_pattern) for line in axes.get_lines()}) == 3  # type: ignore[attr-defined]
    ends = dict(
        zip(["alg1 (Algorithm 1)", "oracle", "naive"], [c.mean[-1] for c in report.curves(data)], strict=True)
    )
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == sorted(ends, key=lambda name: -ends[name])


def test_an_agent_looks_the_same_in_every_figure(data: xr.Dataset) -> None:
    other = unfog.run("fig1-gaussian", rounds=3, trials=2, agents=["naive", "kk", "alg1"])
    styles = [
        {
            line.get_label(): (line.get_color(), str(line.get_linestyle()))
            for line in figures.figure(d).axes[0].get_lines()
        }
        for d in (data, other)
    ]
    assert styles[0]["alg1 (Algorithm 1)"] == styles[1]["alg1 (Algorithm 1)"]
    assert styles[0]["naive"] == styles[1]["naive"]


def test_columns_of_the_table_stand_under_their_names(data: xr.Dataset) -> None:
    lines = unfog.table(data, parts=True).splitlines()
    facts = unfog.summary(data)["agents"]["alg1"]
    titles = {
        "cb": "cb",
        "ee1": "ee1",
        "ee2": "ee2",
        "regret_true_context": "true-context",
        "regret_plug_in": "plug-in",
    }
    for loss, title in titles.items():
        head = next(place for place, line in enumerate(lines) if title in line.split())  # what fits
        row = next(line for line in lines[head:] if line.startswith("alg1"))
        end = lines[head].index(f" {title}") + 1 + len(title)
        assert float(row[:end].split()[-1]) == pytest.approx(facts[loss], abs=0.051)
    assert max(map(len, lines)) <= 80


def test_the_table_is_regret_and_one_difference_unless_more_is_asked_for(data: xr.Dataset) -> None:
    lines = unfog.table(data).splitlines()
    assert lines[1].split() == ["agent", "regret", "minus", "oracle"]
    assert "ee1" not in unfog.table(data, tails=True)
    [said] = [line for line in unfog.table(data, parts=True).splitlines() if line.startswith("cb: ")]
    for word in ("theta", "ee1, ee2", "contexts", "< 0 where these help"):
        assert word in said
    assert len(said) <= 80


def test_a_run_that_kept_no_parts_says_so() -> None:
    told = {"rounds": 4, "trials": 2, "agents": ["alg1", "oracle"], "decompose": False}
    short = unfog.run(parse({"problem": {"kind": "gaussian", "dim": 1}, "run": told}))
    lines = unfog.table(short, parts=True).splitlines()
    assert lines[1].split() == ["agent", "regret", "minus", "oracle"]
    assert lines[-1] == report.NO_PARTS


def test_long_names_fit_and_a_long_reference_is_named_below() -> None:
    long = "unfog-hetero:surprise=true-ucb:quantile=0.9125"
    spec = {"name": "n" * 80, "problem": {"kind": "gaussian", "dim": 1}}
    made = unfog.run(parse({**spec, "run": {"rounds": 4, "trials": 2, "agents": [long, "naive"]}}))
    lines = unfog.table(made, 1.0, parts=True, tails=True).splitlines()
    assert max(map(len, lines)) <= 80
    assert f"reference: {long}" in lines
    assert any("minus reference" in line for line in lines)
    alone = unfog.run(parse({**spec, "run": {"rounds": 4, "trials": 2, "agents": ["naive"]}}))
    assert "minus" not in unfog.table(alone)
    assert unfog.table(alone).splitlines()[-1] == report.REGRET


def test_odd_titles_single_rounds_and_many_curves_can_be_drawn() -> None:
    one = unfog.run("fig1-gaussian", rounds=1, trials=2, agents=["alg1"])
    chart = figures.figure(one, title="$\\frac{$ " + "long " * 40)
    chart.draw_without_rendering()
    spec = parse(
        {
            "problem": {"kind": "gaussian", "dim": 1},
            "run": {"rounds": 3, "trials": 2},
            "sweep": {"actions": [2, 3, 4]},
        }
    )
    many = figures.figure(unfog.run(spec))
    many.draw_without_rendering()
    [axes] = many.axes
    assert len(axes.containers) == 6


def test_an_agent_is_drawn_alike_in_all_panels_and_in_all_figures() -> None:
    run = {"rounds": 3, "trials": 2, "agents": ["drift", "robust", "unfog", "oracle"]}
    told = {"problem": {"kind": "gaussian", "dim": 1}, "run": run}
    swept = figures.figure(unfog.run(parse({**told, "sweep": {"actions": [2, 3], "tails": [0, 3]}})))
    looks = [[one.lines[0] for one in _bars(axes)] for axes in swept.axes]
    alone = [figures.figure(unfog.run(parse(told))).axes[0].get_lines()]
    found = [[(one.get_color(), str(one.get_marker())) for one in lines] for lines in (*looks, *alone)]
    assert len(looks) == 2
    assert sorted(found[0]) == sorted(found[1]) == sorted(found[2])
    assert len({colour for colour, _ in found[0]}) == 4


def _bars(axes: Axes) -> list[ErrorbarContainer]:
    return [one for one in axes.containers if isinstance(one, ErrorbarContainer)]


def test_the_sweep_has_a_curve_for_each_value() -> None:
    swept = unfog.run("fig-actions", rounds=5, trials=2)
    [axes] = figures.figure(swept).axes
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["10", "20", "40", "80"]
    assert legend.get_title().get_text() == "number of arms"


def users(**settings: Any) -> xr.Dataset:
    spec = {"problem": {"kind": "movielens", "ratings": "stand-in"}, "run": {"trials": 5, **settings}}
    return unfog.run(parse(spec))


def test_other_yardsticks_have_standard_errors() -> None:
    data = users(rounds=20, agents=["unfog", "bayes-oracle"])
    for name, row in unfog.summary(data)["agents"].items():
        for loss in ("regret_realised", "regret_bayes"):
            values = data[loss].sel(agent=name).isel(round=-1).values
            assert row[loss] == pytest.approx(values.mean())
            assert row[f"{loss}_se"] == pytest.approx(values.std(ddof=1) / np.sqrt(5))
    lines = unfog.table(data, parts=True).splitlines()
    rows = [line for line in lines if line.startswith("bayes-oracle")]
    assert sum(row.count("±") for row in rows) == 4
    assert "bayes: against the best rule for this sample of contexts" in " ".join(lines)
    assert max(map(len, lines)) <= 80
    assert "bayes:" not in unfog.table(data)


def test_tails_are_those_of_the_trials() -> None:
    data = users(rounds=43, points=5, agents=["unfog", "naive"])
    facts = unfog.summary(data)["agents"]
    assert {23, 33, 43} <= set(data["round"].values.tolist())
    for name in ("unfog", "naive"):
        regret = data["regret"].sel(agent=name)
        final = np.sort(regret.isel(round=-1).values)
        assert facts[name]["q50"] == final[2]
        assert facts[name]["q99"] == pytest.approx(final[3] + 0.96 * (final[4] - final[3]))
        half, before, end = (regret.sel(round=t).values for t in (23, 33, 43))
        grows = [e > b and e - b >= 0.9 * (b - h) for h, b, e in zip(half, before, end, strict=True)]
        assert facts[name]["linear_share"] == sum(grows) / 5
    lines = unfog.table(data, tails=True).splitlines()
    row = next(line for line in lines if line.startswith("naive")).split()
    assert row[-3:] == [
        f"{facts['naive'][key]:.{digits}f}" for key, digits in (("q50", 1), ("q99", 1), ("linear_share", 2))
    ]
    assert "quarter" in lines[-1]
    assert "q99" not in unfog.table(data)


def test_three_rounds_have_no_quarters() -> None:
    short = users(rounds=3, agents=["unfog"])
    assert unfog.summary(short)["agents"]["unfog"]["linear_share"] is None
    assert unfog.table(short, tails=True).splitlines()[3].split()[-1] == "-"
