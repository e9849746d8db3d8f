"""Air Quality as a log: arms are drawn as it says, rewards are what gases say, and the truth is the truth."""

import os
from pathlib import Path

import numpy as np
import pytest

from unfog.evaluation.checks import fits
from unfog.lab.datasets.airquality import ARMS, GASES, air_log
from unfog.lab.datasets.files import DATASETS
from unfog.validation import InputError

FILE = DATASETS["airquality"].file


@pytest.fixture(autouse=True)
def _data(monkeypatch: pytest.MonkeyPatch) -> None:
    """The data set's file on this machine; without one tests are skipped."""
    folder = Path(os.environ.get("UNFOG_DATA") or Path(__file__).parents[4] / "shared/data")
    if not (folder / FILE).exists() and not (folder / Path(FILE).name).exists():
        pytest.skip("no Air Quality on this machine: neither in UNFOG_DATA nor in ../shared/data")
    monkeypatch.setenv("UNFOG_DATA", str(folder))


def test_arms_are_drawn_by_readings_and_rewards_by_the_truth() -> None:
    found = air_log(epsilon=0.2, reward_sd=0.1, seed=3)
    log = found.log
    assert (log.rounds, log.coordinates, log.arms) == (5941, GASES, ARMS)
    highest = np.where((log.noisy > 0).any(axis=1), 1 + log.noisy.argmax(axis=1), 0)
    law = np.asarray(log.probabilities)
    np.testing.assert_allclose(law[np.arange(5941), highest], 0.84)
    np.testing.assert_allclose(law.sum(axis=1), 1.0)
    assert all(fit.fits for fit in fits(log))
    above = np.column_stack([np.zeros(5941), found.true - found.true.mean(axis=0)])
    left = log.reward - above[np.arange(5941), log.arm]
    assert abs(left.mean()) < 4 * 0.1 / 5941**0.5
    np.testing.assert_allclose(left.std(), 0.1, rtol=0.04)  # four standard errors


def test_the_calibration_sees_the_first_hours_alone() -> None:
    """Errors there are as told; later they are not, which hindsight knows."""
    told, later = air_log(), air_log(hindsight=True)
    errors = told.log.noisy - told.true
    assert errors[:, 3].var() > 5 * told.channel.noise_cov[3, 3]
    whole = later.channel.noise_cov + later.channel.bias_cov
    assert (later.log.noisy - later.true)[:, 3].var() < 2 * whole[3, 3]
    assert told.channel.bias.tolist() == [0.0] * 4


def test_drawn_errors_are_those_of_the_channel() -> None:
    found = air_log(errors="gaussian", hindsight=True, seed=1)
    cov = np.cov(found.log.noisy - found.true, rowvar=False)
    np.testing.assert_allclose(cov, found.channel.noise_cov, atol=0.1, rtol=0.1)


@pytest.mark.slow
def test_values_are_between_nothing_and_the_best() -> None:
    found = air_log()
    instead, beside = found.values(), found.values(beside=True)
    above = np.column_stack([np.zeros(5941), found.true - found.true.mean(axis=0)])
    best = above.max(axis=1).mean()
    assert best - 0.01 < instead["all"] <= best  # rewards are linear: few numbers are to be learnt
    assert instead["denoised"] == beside["denoised"]
    assert 0 < instead["denoised"] < best - 0.1
    assert beside["NO2"] > instead["NO2"] + 0.03  # its drift tells the season


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InputError, match=r"^epsilon: 1\.5; allowed: a number above 0 and at most 1"):
        air_log(epsilon=1.5)
    with pytest.raises(InputError, match=r"^errors: 'real'; allowed: data, gaussian"):
        air_log(errors="real")
