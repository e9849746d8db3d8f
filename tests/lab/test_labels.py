"""One agent, one name, one colour, one dash, one mark: in every figure, in whichever company."""

import itertools
import re
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgb

import unfog
from tests.each import each
from tests.lab.charts import inside
from unfog.agents.catalogue import AGENTS, EVERY
from unfog.lab import figures, labels, spec
from unfog.lab import sweep as sweeps
from unfog.lab.figures import panels
from unfog.lab.labels import FIRST, LOOKS, Look, called, looks, ordered
from unfog.lab.spec import parse
from unfog.plotting import COLUMN, DPI, PAGE

PLAIN = ("naive", "oracle", "kk", "alg1", "alg2")
APART = 10.0  # a difference of colours in CIELAB that is seen at a glance
# Machado, Oliveira and Fernandes (2009): what is left of linear red, green and blue, at full severity
BLIND = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}


def run(agents: list[str], sweep: Any = None, **problem: Any) -> Any:
    told = {
        "problem": {"kind": "gaussian", "dim": 1, **problem},
        "run": {"rounds": 8, "trials": 3, "agents": agents},
    }
    return unfog.run(parse(told | ({"sweep": sweep} if sweep else {})))


def lab(colour: str, seen: Any = None) -> Any:
    """CIELAB of a colour, as somebody sees it."""
    rgb = np.asarray(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    if seen is not None:
        linear = np.clip(np.asarray(seen) @ linear, 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    ratio = to_xyz @ linear / [0.9505, 1.0, 1.089]
    f = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_every_agent_and_baseline_is_in_the_map_with_a_colour_of_its_own() -> None:
    assert {*EVERY} <= {*LOOKS}
    assert len({look.colour for look in LOOKS.values()}) == len(LOOKS)


def test_agents_are_told_apart_without_colour() -> None:
    """Any two of the catalogue by dash and mark; those of one experiment by both."""
    pairs = [(str(LOOKS[name].dash), LOOKS[name].mark) for name in AGENTS]
    assert len(set(pairs)) == len(AGENTS)
    for found in spec.catalog().values():
        own = [LOOKS[name] for name in found.run.agents if name in LOOKS]
        assert len({str(look.dash) for look in own}) == len(own), found.name
        assert len({look.mark for look in own}) == len(own), found.name


@each("seen", [None, *BLIND])
def test_colours_of_one_experiment_are_apart_for_the_colour_blind(seen: str | None) -> None:
    for names in (*(one.run.agents for one in spec.catalog().values()), [FIRST, *PLAIN]):
        own = [name for name in names if name in LOOKS]
        for one, other in itertools.combinations(own, 2):
            gap = lab(LOOKS[one].colour, BLIND.get(seen or "")) - lab(
                LOOKS[other].colour, BLIND.get(seen or "")
            )
            assert np.linalg.norm(gap) > APART, (one, other)


def test_the_recommended_agent_is_in_front() -> None:
    """Broader, over the others, darker in grey and more saturated than the paper's, and first in legends."""
    first = LOOKS[FIRST]
    assert all(
        first.width > 1.5 * look.width and first.above > look.above for n, look in LOOKS.items() if n != FIRST
    )
    chroma = {name: float(np.hypot(*lab(LOOKS[name].colour)[1:])) for name in (FIRST, *PLAIN)}
    assert max(chroma, key=chroma.__getitem__) == FIRST
    assert all(lab(first.colour)[0] < lab(LOOKS[name].colour)[0] for name in PLAIN)
    assert ordered(["naive", "kk", FIRST, "alg1"]) == [FIRST, "naive", "kk", "alg1"]
    alone = figures.figure(run(["naive", "unfog", "oracle"])).axes[0].get_legend()
    swept = figures.figure(run(["naive", "unfog", "oracle"], {"actions": [2, 3]})).axes[0].get_legend()
    for legend in (alone, swept):
        assert legend is not None
        assert legend.get_texts()[0].get_text() == FIRST


def test_company_and_order_do_not_change_a_look() -> None:
    own = [f"unfog-scaled:ratio={ratio}" for ratio in (2, 3, 4)]
    first, second = looks([*own, "alg1", "drift"]), looks(["naive", "drift", *reversed(own), "alg1"])
    assert all(first[name] == second[name] for name in first)
    alone = {name: looks([name])[name] for name in own}
    assert [name for name in own if alone[name] != first[name]] == []


def test_names_outside_the_map_do_not_clash() -> None:
    names = [f"mine-{place}" for place in range(12)]
    found = looks(names)
    assert len({look.colour for look in found.values()}) == 12
    assert not {look.colour for look in found.values()} & {look.colour for look in LOOKS.values()}
    assert looks([*names, "one more"])  # more than there are colours: they begin again
    assert found == looks(reversed(names))


@each("agents", [["alg1", "naive"], ["naive", "kk", "unfog", "alg2", "alg1", "oracle"]])
def test_two_figures_give_an_agent_the_same_look(agents: list[str]) -> None:
    curves, swept = figures.figure(run(agents)), figures.figure(run(agents, {"actions": [2, 3]}))
    for chart in (curves, swept):
        for axes in chart.axes:
            handles, names = axes.get_legend_handles_labels()
            assert {*names} == {called(name) for name in agents}
            for handle, name in zip(handles, names, strict=True):
                line: Any = handle if not hasattr(handle, "lines") else handle.lines[0]
                look: Look = LOOKS[name.partition(" (")[0]]
                assert (line.get_color(), line.get_marker()) == (look.colour, look.mark)
                assert line.get_linewidth() == look.width


def test_names_are_those_of_tables() -> None:
    data = run(["alg1", "naive", "unfog-scaled:ratio=2"])
    legend = figures.figure(data).axes[0].get_legend()
    assert legend is not None
    table = unfog.table(data)
    for text in legend.get_texts():
        assert f"\n{text.get_text().partition(' (')[0]} " in table


def test_values_of_one_agent_go_from_dark_to_light() -> None:
    """So that their order is seen, in grey, too."""
    [axes] = figures.figure(run(["alg1"], {"actions": [2, 3, 4, 5]})).axes
    light = [float(lab(str(line.get_color()))[0]) for line in axes.get_lines() if line.get_label()[0] != "_"]  # type: ignore[index]
    assert np.diff(light).min() > 5


def test_the_truth_stands_where_it_is_and_never_at_zero() -> None:
    sweep = {"assumed_noise_cov": [0.0, 0.2, 5.0]}
    chart = figures.figure(run(["alg1", "naive"], sweep, noise_cov=1.0))
    [axes] = chart.axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0.2", "1\n(the truth)", "5.0"]
    assert axes.get_xticks().tolist() == [0.2, 1.0, 5.0]
    assert axes.get_xscale() == "log"
    assert chart.get_supxlabel().strip() == "size of the noise that agents assume"


@each(
    "sweep, problem, ticks",
    [
        ({"assumed_noise_cov": [0.0, 0.5]}, {"dim": 2, "noise_cov": [1.0, 2.0]}, ["0.5", "the truth"]),
        ({"tails": [0, 3, 10]}, {}, ["3", "10", "Gaussian"]),
    ],
)
def test_a_value_that_is_no_number_stands_apart(sweep: Any, problem: Any, ticks: list[str]) -> None:
    [axes] = figures.figure(run(["alg1", "naive"], sweep, **problem)).axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ticks
    assert min(axes.get_xticks()) > 0
    for one in axes.containers:
        at, mean = np.asarray(one.lines[0].get_xydata()).T  # type: ignore[attr-defined]
        assert np.isnan(at[-2])  # the line is broken in front of it
        assert not np.isnan([at[-1], mean[-1]]).any()


def test_every_field_that_the_catalogue_sweeps_has_words() -> None:
    swept = {field for one in spec.catalog().values() for field in sweeps.fields(one.sweep)}
    assert swept <= {*labels.WORDS}
    known = {field for fields in spec.DEFAULTS.values() for field in fields}
    assert {*labels.WORDS} <= known
    assert not any("_" in words for words in labels.WORDS.values())


def test_agents_of_learners_and_choosers_differ_in_grey_or_in_mark() -> None:
    named = [name for name in LOOKS if name.startswith("alg1-exact")] + ["oracle", "robust", "gaps", "late"]
    for one, other in itertools.combinations(named, 2):
        grey = abs(lab(LOOKS[one].colour)[0] - lab(LOOKS[other].colour)[0])
        assert LOOKS[one].mark != LOOKS[other].mark or grey > 20, (one, other)


def test_axes_are_in_words_alone_and_regret_has_one_name() -> None:
    swept = figures.figure(run(["alg1", "naive"], {"missing": [0.0, 0.5]}))
    assert swept.get_supxlabel().strip() == "share of readings lost"
    assert swept.get_supylabel() == "reward lost in all (regret)"
    curves = figures.figure(run(["alg1"], {"noise_cov": [0.5, 1.0]}))
    legend = curves.axes[0].get_legend()
    assert legend is not None
    assert legend.get_title().get_text() == "size of the noise"
    assert curves.axes[0].get_ylabel() == "reward lost so far (regret)"


def test_panels_are_all_named_in_the_same_words() -> None:
    sweep = {"noise_cov": [0.5, 1.0], "features": ["quadratic", "product"]}
    chart = figures.figure(run(["alg1", "naive"], sweep))
    titles = [axes.get_title(loc="left") for axes in chart.axes]
    assert titles == ["features of a reward =\nquadratic", "features of a reward =\nproduct"]


def test_titles_of_the_catalogue_count_no_agents_and_name_no_zeros() -> None:
    for one in spec.catalog().values():
        assert not re.search(r"\b(five|six|seven) agents|\(0\)", one.title), one.title


def test_values_that_are_no_numbers_have_their_words_in_tables_too() -> None:
    told = run(["alg1", "naive"], {"assumed_noise_cov": [0.0, 0.5]}, noise_cov=1.0)
    lines = unfog.table(told).splitlines()
    assert [line.split("  ")[0] for line in lines[3:7]] == ["the truth", "", "0.5", ""]
    assert "alg1 assumed_noise_cov=0.0" in unfog.summary(told)["agents"]  # rows keep their keys
    assert labels.labelled("alg1 tails=0 actions=10") == "alg1 tails=Gaussian actions=10"
    assert labels.labelled("alg1 tails=10 actions=0") == "alg1 tails=10 actions=0"
    assert labels.labelled("alg1 assumed_noise_cov=0.05") == "alg1 assumed_noise_cov=0.05"


MANY = ["alg1", "alg1-exact", "alg2", "alg2-exact", "naive", "oracle", "kk", "unfog"]
CHARTS: dict[str, tuple[list[str], Any, float]] = {
    "two": (["alg1", "alg2"], None, COLUMN),
    "five": (["unfog", "alg1", "alg2", "naive", "oracle"], None, COLUMN),
    "eight": (MANY, None, PAGE),
    "long names": (["alg1-exact-hetero-toptwo", "alg1"], None, PAGE),
    "values": (["alg1"], {"actions": [2, 3, 4, 5, 6, 7, 8, 9]}, COLUMN),
    "numbers": (["alg1", "alg2", "unfog"], {"noise_cov": [0.1, 1.0, 10.0]}, COLUMN),
    "categories": (["alg1", "unfog"], {"features": ["product", "quadratic"]}, PAGE),
    "panels": (MANY, {"actions": [2, 3], "bias_cov": [0.5, 1.0], "tails": [0, 3]}, PAGE),
}


@pytest.mark.parametrize("name", CHARTS)
def test_figures_are_as_wide_as_columns_and_no_text_is_cut(name: str) -> None:
    agents, sweep, width = CHARTS[name]
    chart = figures.figure(run(agents, sweep))
    assert (chart.get_figwidth(), chart.get_dpi()) == (width, DPI)
    assert inside(chart)


@pytest.mark.parametrize("name", ["two", "numbers", "categories"])
def test_a_figure_is_as_wide_as_told_with_letters_of_the_same_size(name: str) -> None:
    agents, sweep, _ = CHARTS[name]
    chart = figures.figure(run(agents, sweep), width=PAGE)
    assert chart.get_figwidth() == PAGE
    assert inside(chart)


def test_panels_share_a_legend_and_no_text_is_cut() -> None:
    chart = panels([run(MANY), run(["alg1", "naive"]), run(["unfog"])])
    assert chart.get_figwidth() == PAGE
    [legend] = chart.legends
    assert legend.get_texts()[0].get_text() == FIRST
    assert len(legend.get_texts()) == len(MANY)
    assert inside(chart)
    assert ["3 trials" in axes.get_xlabel() for axes in chart.axes] == [True] * 3


def test_categories_are_not_joined_and_numbers_are() -> None:
    for sweep, joined in (({"features": ["product", "quadratic"]}, False), ({"actions": [2, 3]}, True)):
        [axes] = figures.figure(run(["alg1", "unfog"], sweep)).axes
        styles = {one.lines[0].get_linestyle() for one in axes.containers}  # type: ignore[attr-defined]
        assert (styles == {"None"}) != joined


def test_seven_agents_have_bars_instead_of_bands() -> None:
    data = run(MANY[:7])
    [axes] = figures.figure(data).axes
    assert len(axes.containers) == 7
    assert not [one for one in axes.collections if type(one).__name__ == "FillBetweenPolyCollection"]


def test_the_three_panels_of_the_paper_fit() -> None:
    agents = ["alg1", "alg2", "naive", "oracle", "kk"]
    runs = [
        unfog.run(name, rounds=3, trials=2, agents=agents)
        for name in ("fig1-gaussian", "gaussian-correlated")
    ]
    assert inside(panels([*runs, runs[0].assign_attrs(note="a stand-in, not MovieLens")]))
