"""Beliefs about contexts, round by round, and the pictures of them."""

from typing import Any

import numpy as np
import pytest
from benchmarks.airquality_figures import Estimate, Panel, Stretch, share_figure, stretch_figure, track

import unfog
from tests.lab.charts import inside
from unfog.lab.labels import LOOKS
from unfog.validation import InputError

FIELDS: dict[str, Any] = {"dim": 2, "actions": 4}


def test_a_track_is_of_the_round_before_its_context_is_shown() -> None:
    problem = unfog.TemporalProblem(**FIELDS, revealed=0.3)
    seen = track(problem, "temporal", rounds=60, trials=5, seed=2)
    assert {one.shape for one in seen[1:]} == {(5, 60, 2)}
    assert seen.at.shape == (5, 60)
    assert (seen.deviation > 0).all()
    assert (seen.mean != seen.true).all()
    # A band of 1.96 deviations is 95 %; of 600 coordinates, correlated, 0.90 to 0.99 by far.
    assert 0.9 < seen.covered().mean() < 0.99
    assert (seen.readings() == seen.shown[..., 0].sum(-1)).all()
    assert 0.15 < seen.readings().mean() / 60 < 0.45


def test_who_takes_readings_for_the_truth_errs_by_the_noise() -> None:
    problem = unfog.GaussianProblem(**FIELDS, noise_cov=0.5, bias_cov=1e-9)
    seen = track(problem, "naive", rounds=300, trials=10)
    np.testing.assert_array_equal(seen.mean, seen.noisy)
    assert not seen.deviation.any()
    assert not seen.shown.any()
    assert seen.at[0].tolist() == list(range(300))
    # 6,000 squares of variance 0.5: a standard error of 0.009.
    assert seen.squared_error().mean() == pytest.approx(0.5, abs=0.04)


@pytest.mark.parametrize(("name", "value"), [("rounds", 0), ("trials", 0), ("seed", -1)])
def test_bad_numbers_are_refused(name: str, value: int) -> None:
    with pytest.raises(InputError, match=f"^{name}: "):
        track(unfog.GaussianProblem(**FIELDS), "unfog", **{name: value})


def test_the_picture_of_a_stretch_is_broken_at_gaps() -> None:
    at = np.array([0.0, 1.0, 2.0, 7.0, 8.0])
    shown = np.array([False, True, False, False, True])
    seen = Stretch(at, at + 3, at + 1, at + 2, at + 1.5, at + 2.5, shown)
    chart = stretch_figure(seen, "a stretch", unit="ppm", time="hour", gap=2.0, logs=True)
    above, below = chart.axes
    true, noisy = (np.asarray(line.get_ydata(), float) for line in above.get_lines())
    np.testing.assert_array_equal(np.isnan(true), [False] * 3 + [True] + [False] * 2)
    np.testing.assert_array_equal(noisy[~np.isnan(noisy)], seen.noisy)
    dots = below.get_lines()[-1]
    assert np.asarray(dots.get_xdata()).tolist() == [1.0, 8.0]
    assert np.asarray(dots.get_ydata()).tolist() == [2.0, 9.0]
    assert above.get_yscale() == "log"
    assert inside(chart)


def test_the_picture_of_shares_has_a_place_for_none() -> None:
    curve = [Estimate(3.0, 0.2), Estimate(2.0, 0.1), Estimate(1.0, 0.1)]
    panel = Panel("regret", curve, {"naive": Estimate(4.0, 0.3)})
    chart = share_figure([0.0, 0.1, 1.0], [panel, panel._replace(name="error")], note="a note")
    first, second = chart.axes
    assert [label.get_text() for label in first.get_xticklabels()] == ["none", "1 in 10", "all"]
    assert first.get_xticks().tolist() == [0.05, 0.1, 1.0]
    assert [first.get_title("left"), second.get_title("left")] == ["regret", "error"]
    legend = first.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["naive", "temporal"]
    [joined] = first.containers
    assert np.isnan(joined.lines[0].get_xdata()).tolist() == [False, True, False, False]  # type: ignore[attr-defined]  # none stands alone
    naive = first.get_lines()[0]
    assert (naive.get_color(), naive.get_linewidth()) == (LOOKS["naive"].colour, LOOKS["naive"].width)
    assert inside(chart)
