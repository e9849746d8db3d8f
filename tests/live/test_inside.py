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
        "floor": 0.1,
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
    before, found = walks.fingerprint(), walks.expected(asked, unit="ann")
    assert walks.fingerprint() == before
    context = walks.decide(asked, unit="ann").denoised
    z = np.array([1.0, *(np.array([*context.values()]) - MEAN) / np.sqrt(np.diag(CONTEXT))])
    mean = belief["theta"].values @ z
    spread = (found["high"] - found["low"]).values / 3.29
    np.testing.assert_allclose(found["mean"], mean, atol=4 * spread.max() / 2000**0.5)
    assert float(found["probability_best"].sum()) == pytest.approx(1)
    assert (found["low"] < found["mean"]).all()
    assert (found["mean"] < found["high"]).all()
    assert found["probability_best"].to_series().idxmax() == "send"
    assert set(walks.expected(asked, arms=["wait"])["arm"].values) == {"wait"}


def test_diagnostics_count_what_happened(walks: Problem) -> None:
    made = [walks.decide(reading, unit="ann") for reading in READINGS]
    walks.reward(made[0].id, 1.0)
    walks.reward(made[1].id, 2.0)
    walks.void(made[2].id)
    walks.reveal(made[0].id, {"steps": 7065.0})
    walks.decide({"steps": None, "sleep": 7.0}, unit="bob")
    found = walks.diagnostics()
    counts = {
        name: found.attrs[name] for name in ("decisions", "rewards", "voided", "revealed", "pending", "late")
    }
    assert counts == {"decisions": 6, "rewards": 2, "voided": 1, "revealed": 1, "pending": 3, "late": 0}
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
        plain = store.problem("plain", **terms(channel=None))
        made = plain.decide([1.0, 2.0])
        assert (made.denoised, made.sd) == ({"steps": 1.0, "sleep": 2.0}, {"steps": 0.0, "sleep": 0.0})
        assert "ordinary contextual bandit" in plain.note
        assert plain.note in plain.diagnostics().attrs["notes"]
        assert "bias" not in plain.belief()
        pairs = store.problem("pairs", **terms(agent="unfog-delayed"))
        assert "must come whole" in pairs.note
