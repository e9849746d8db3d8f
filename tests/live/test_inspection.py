"""What is said of the inside of a problem, in the caller's units, against computations of their own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unfog
from unfog.live import Problem

MEAN, BIAS = np.array([7000.0, 7.0]), np.array([-800.0, 0.4])
CONTEXT = np.array([[4e6, 500.0], [500.0, 1.0]])
NOISE = np.array([[1.5e6, -200.0], [-200.0, 0.5]])
SPREAD = np.array([[9e5, 150.0], [150.0, 0.2]])
CHANNEL = {"context_mean": MEAN, "context_cov": CONTEXT, "noise_cov": NOISE, "bias_cov": SPREAD, "bias": BIAS}
READINGS = np.array([[5200.0, 7.9], [6100.0, 6.0], [8000.0, 8.4], [3900.0, 7.2], [6500.0, 7.7]])


@pytest.fixture
def walks(tmp_path: Path) -> Iterator[Problem]:
    with unfog.live.open(tmp_path / "walks.unfog", sync="normal", clock=lambda: 0.0) as store:
        yield store.problem("walks", **terms())


def terms(**more: Any) -> dict[str, Any]:
    told = {
        "context": ["steps", "sleep"],
        "arms": ["send", "wait"],
        "channel": CHANNEL,
        "seed": 3,
        "epsilon": 0.1,
    }
    return told | more


def joint(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of the bias and the last context, given so many readings: means and deviations, by brute force."""
    d = 2
    eye, one = np.eye(d), np.ones((number, 1))
    # unknowns: the bias less what is known of it, then every context less its mean
    prior = np.block(
        [[SPREAD, np.zeros((d, d * number))], [np.zeros((d * number, d)), np.kron(np.eye(number), CONTEXT)]]
    )
    seen = np.hstack([np.kron(one, eye), np.eye(d * number)])
    gain = prior @ seen.T @ np.linalg.inv(seen @ prior @ seen.T + np.kron(np.eye(number), NOISE))
    away = (READINGS[:number] - MEAN - BIAS).reshape(-1)
    mean, cov = gain @ away, prior - gain @ seen @ prior
    return mean[:d] + BIAS, np.sqrt(np.diag(cov)), mean[-d:] + MEAN


def test_bias_and_denoised_contexts_are_those_of_one_joint_gaussian(walks: Problem) -> None:
    for number, reading in enumerate(READINGS, 1):
        made = walks.decide(reading, unit="ann")
        walks.decide(reading[::-1] * [800.0, 0.001], unit="bob")  # says nothing of ann's
        bias, sd, context = joint(number)
        found = walks.belief(unit="ann")
        np.testing.assert_allclose(found["bias"].sel(coordinate=["steps", "sleep"]), bias, rtol=1e-9)
        np.testing.assert_allclose(found["bias_sd"], sd[:2], rtol=1e-9)
        np.testing.assert_allclose([*made.denoised.values()], context, rtol=1e-9)
        np.testing.assert_allclose([*made.sd.values()], sd[-2:], rtol=1e-9)


def test_expected_rewards_are_those_of_draws_from_the_belief(walks: Problem) -> None:
    rng = np.random.default_rng(4)
    for reading in np.repeat(READINGS, 8, axis=0) + rng.normal(size=(40, 2)) * [900, 0.5]:
        made = walks.decide(reading, unit="ann")
        walks.reward(made.id, float(rng.normal(1.0 if made.arm == "send" else -0.5, 1)))
    belief, asked = walks.belief("ann"), {"steps": 5000.0, "sleep": 8.0}
    before, found = walks.state_hash(), walks.predict_rewards(asked, unit="ann")
    assert walks.state_hash() == before
    context = walks.decide(asked, unit="ann").denoised
    z = np.array([1.0, *(np.array([*context.values()]) - MEAN) / np.sqrt(np.diag(CONTEXT))])
    mean = belief["theta_standard"].values @ z
    spread = (found["high"] - found["low"]).values / 3.29
    np.testing.assert_allclose(found["mean"], mean, atol=4 * spread.max() / 2000**0.5)
    assert float(found["probability_best"].sum()) == pytest.approx(1)
    assert (found["low"] < found["mean"]).all()
    assert (found["mean"] < found["high"]).all()
    assert found["probability_best"].to_series().idxmax() == "send"
    assert set(walks.predict_rewards(asked, arms=["wait"])["arm"].values) == {"wait"}


def test_theta_is_in_the_units_of_the_caller(tmp_path: Path) -> None:
    """A Gaussian process with the kernel 1 + z'z, of true contexts: its values at 0 and one from there."""
    rng, paid, contexts = np.random.default_rng(6), list[float](), list[np.ndarray]()
    given = terms(agent="alg2", arms=["send"], reward_sd=0.5, prior_cov=1.0, epsilon=0)
    with unfog.live.open(tmp_path / "pairs.unfog", sync="normal", clock=lambda: 0.0) as store:
        pairs = store.problem("pairs", **given)
        for _ in range(60):
            contexts.append(MEAN + np.linalg.cholesky(CONTEXT) @ rng.normal(size=2))
            paid.append(3 + 0.001 * contexts[-1][0] + 0.5 * rng.normal())
            made = pairs.decide(contexts[-1] + BIAS)
            pairs.reward(made.id, paid[-1])
            pairs.reveal(made.id, contexts[-1])
        found = pairs.belief()

    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return 1 + ((a - MEAN) / np.diag(CONTEXT)) @ (b - MEAN).T

    at, seen = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array(contexts)
    gain = kernel(at, seen) @ np.linalg.inv(kernel(seen, seen) + 0.25 * np.eye(60))
    slopes = np.array([[1.0, 0.0, 0.0], [-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
    cov = slopes @ (kernel(at, at) - gain @ kernel(seen, at)) @ slopes.T
    np.testing.assert_allclose(found["theta"].sel(arm="send"), slopes @ gain @ paid, rtol=1e-6)
    np.testing.assert_allclose(found["theta_sd"].sel(arm="send"), np.sqrt(np.diag(cov)), rtol=1e-4)
    away = (found["theta"].sel(arm="send") - [3, 0.001, 0]) / found["theta_sd"].sel(arm="send")
    assert abs(away).max() < 4
    assert "as they are" in found.attrs["theta_units"]


def test_theta_of_other_features_is_of_contexts_in_deviations(tmp_path: Path) -> None:
    vectors = {"send": [1.0, 0.5], "wait": [-0.5, 1.0]}
    with unfog.live.open(tmp_path / "other.unfog", sync="normal") as store:
        found = store.problem("other", **terms(arms=vectors, features="product")).belief()
    assert found["theta"].dims == ("feature",)
    assert "theta_standard" not in found
    assert "in deviations" in found.attrs["theta_units"]


def test_it_is_said_whose_bias_is_shown(walks: Problem) -> None:
    assert walks.diagnostics().attrs["bias_label"] == "the sensor"
    walks.decide(READINGS[0], unit="ann")
    one = walks.diagnostics()
    assert one.attrs["bias_label"] == "unit ann"
    np.testing.assert_array_equal(one["bias"], walks.belief("ann")["bias"])
    np.testing.assert_array_equal(one["bias_sd"], walks.belief("ann")["bias_sd"])
    assert np.isnan(one["bias_units_sd"]).all()
    walks.decide(READINGS[1], unit="bob")
    walks.decide(READINGS[2], unit="bob")
    assert walks.belief().attrs["bias_label"] == "a new unit"
    walks.decide(READINGS[3])
    assert walks.belief().attrs["bias_label"] == "readings without a unit"
    many, each = walks.diagnostics(), [walks.belief(unit) for unit in ("ann", "bob", None)]
    assert many.attrs["bias_label"] == "the mean of 3 units"
    means, sds = (np.array([one[name].values for one in each]) for name in ("bias", "bias_sd"))
    np.testing.assert_allclose(many["bias"], means.sum(0) / 3)
    np.testing.assert_allclose(many["bias_sd"] ** 2, (sds**2).sum(0) / 3)
    np.testing.assert_allclose(many["bias_units_sd"] ** 2, ((means - means.sum(0) / 3) ** 2).sum(0) / 2)
    np.testing.assert_allclose(many["context_sd"], [2000, 1])
    panel: Any = walks.figure().axes[0]
    assert panel.get_title("left") == "bias: the mean of 3 units"
    np.testing.assert_allclose(panel.containers[0].lines[0].get_ydata(), many["bias"] / [2000, 1])
    assert panel.texts[0].get_text() == "as believed; bars: two deviations between units"


def test_diagnostics_count_what_happened(walks: Problem) -> None:
    made = [walks.decide(reading, unit="ann") for reading in READINGS]
    walks.reward(made[0].id, 1.0)
    walks.reward(made[1].id, 2.0)
    walks.cancel(made[2].id)
    walks.reveal(made[0].id, {"steps": 7065.0})
    walks.decide({"steps": None, "sleep": 7.0}, unit="bob")
    found = walks.diagnostics()
    counts = {
        name: found.attrs[name]
        for name in ("decisions", "rewards", "cancelled", "revealed", "pending", "late")
    }
    assert counts == {"decisions": 6, "rewards": 2, "cancelled": 1, "revealed": 1, "pending": 3, "late": 0}
    assert float(found["rmse_noisy"].sel(coordinate="steps")) == pytest.approx(7065 - 5200.0)
    assert float(found["rmse_denoised"].sel(coordinate="steps")) == pytest.approx(
        abs(made[0].denoised["steps"] - 7065)
    )
    assert found["readings"].values.tolist() == [5.0, 6.0]
    assert any("gap" in note for note in found.attrs["notes"])
    assert float(found["chosen"].sum()) == 6
    assert len(walks.figure().axes) >= 6


def test_problems_without_a_channel_say_so(tmp_path: Path) -> None:
    with unfog.live.open(tmp_path / "plain.unfog", sync="normal") as store:
        plain = store.problem("plain", **terms(channel=None, agent="unfog"))
        made = plain.decide([1.0, 2.0])
        assert (made.denoised, made.sd) == ({"steps": 1.0, "sleep": 2.0}, {"steps": 0.0, "sleep": 0.0})
        assert "ordinary contextual bandit" in plain.note
        assert plain.note in plain.diagnostics().attrs["notes"]
        assert "bias" not in plain.belief()
        pairs = store.problem("pairs", **terms(agent="unfog-delayed"))
        assert "must be complete" in pairs.note
