"""A study goes straight into the lab: `found.problem` is the world made by hand, known bias included."""

from typing import Any

import numpy as np
import pytest

import unfog
from tests.channel.studies import BIAS, D, Sensor, heavy
from tests.problems import within
from unfog.channel.channel import channel, keep_units
from unfog.lab.spec import build_problem, describe
from unfog.simulation.job import truth_draws
from unfog.worlds.calibrated import Calibrated
from unfog.worlds.synthetic import Synthetic

SENSOR = Sensor(np.random.default_rng(6))
TRUE = SENSOR.contexts(300)
NOISY = SENSOR.read(TRUE)
FOUND = unfog.calibrate(NOISY, TRUE)
FIELDS: dict[str, Any] = {"actions": 4, "features": "per_arm", "prior_cov": 0.3, "reward_var": 0.5}


def regret(problem: Any) -> Any:
    return unfog.run(problem, rounds=40, trials=6, agents=["unfog", "naive", "oracle"])


@pytest.mark.parametrize("standardise", [True, False])
def test_a_study_is_a_world_made_by_hand(standardise: bool) -> None:
    true, errors = TRUE, NOISY - TRUE
    spread = FOUND.bias_cov
    if standardise:
        scale = TRUE.std(0, ddof=1)
        true, errors, spread = (TRUE - TRUE.mean(0)) / scale, errors / scale, spread / np.outer(scale, scale)
    hand = unfog.GaussianProblem(
        dim=D,
        context_mean=true.mean(0),
        context_cov=np.cov(true.T),
        noise_cov=np.cov(errors.T),
        bias_cov=spread,
        **FIELDS,
    )
    one, other = regret(FOUND.problem(standardise=standardise, **FIELDS)), regret(hand)
    for name in other.data_vars:
        np.testing.assert_allclose(one[name], other[name], rtol=1e-8, atol=1e-8)
    assert float(other["regret"].sel(agent="naive").isel(round=-1).mean()) > 0


def test_what_a_sensor_counts_in_does_not_matter() -> None:
    """A prior of 1 is as large for steps as for kilometres, and so is what is lost."""
    units, origin = np.array([2000.0, 1e-3, 1.0]), np.array([7000.0, 0.0, -40.0])
    other = unfog.calibrate(NOISY * units + origin, TRUE * units + origin)
    asked: dict[str, Any] = {"actions": 4, "features": "per_arm", "prior_cov": 1.0}
    one, same = (regret(found.problem(**asked)) for found in (FOUND, other))
    np.testing.assert_allclose(same["regret"], one["regret"], rtol=1e-6, atol=1e-6)
    raw = regret(other.problem(standardise=False, **asked))
    assert float(raw["regret"].max()) > 100 * float(one["regret"].max())


@pytest.mark.parametrize("standardise", [True, False])
@pytest.mark.parametrize("world", [unfog.GaussianProblem, unfog.LogisticProblem])
def test_the_known_bias_is_in_its_place(world: type[Synthetic], standardise: bool) -> None:
    fields = {name: value for name, value in FIELDS.items() if name != "reward_var"}
    problem, rounds = FOUND.problem(world, standardise=standardise, **fields), 20_000
    units = FOUND.units if standardise else keep_units(FOUND.channel)
    truth = problem.truth(truth_draws(3, [0], problem.truth_draws()))
    normals = np.random.default_rng(1).standard_normal((rounds, 1, problem.round_normals()))
    seen = problem.emit(truth, normals, np.arange(rounds)[:, None])
    readings = units.outside(problem.readings(seen.noisy)[:, 0])
    again = unfog.calibrate(readings, units.outside(seen.context[:, 0]))
    # 24 tests at 5 standard errors: 1e-5. A trial's own bias, gamma, comes on top of the one that is known.
    assert within(again.bias, FOUND.bias + truth.bias[0] * units.scale, again.errors.bias)
    for part in ("context_mean", "context_cov", "noise_cov"):
        assert within(getattr(again, part), getattr(FOUND, part), getattr(again.errors, part)), part
    # What a live problem makes of the readings is what agents of the lab are shown.
    np.testing.assert_allclose(units.read(readings), seen.noisy[:, 0], atol=1e-11)
    assert np.abs(FOUND.bias - BIAS).max() < 0.5
    assert np.abs(FOUND.bias).min() > 0.1


def test_a_world_of_a_study_can_be_written_down() -> None:
    problem = FOUND.problem(**FIELDS)
    fields = describe(problem)
    assert fields is not None
    np.testing.assert_allclose(fields["bias"], FOUND.bias / TRUE.std(0, ddof=1), rtol=1e-12)
    again = build_problem(fields)
    assert isinstance(again, unfog.GaussianProblem)
    shown = FOUND.units.outside(again.readings(np.zeros(D)))
    np.testing.assert_allclose(shown, TRUE.mean(0) + FOUND.bias, rtol=1e-12)


def test_every_design_has_a_world() -> None:
    twice = SENSOR.read(np.repeat(TRUE[:, None], 2, axis=1))
    holes = np.where(np.arange(300)[:, None] < 60, TRUE, np.nan)
    for found in (
        unfog.calibrate(twice),
        unfog.calibrate(NOISY, holes, design="subset"),
        unfog.calibrate(NOISY, noise_cov=FOUND.noise_cov, noise_df=60, bias=BIAS, bias_cov=0.1),
        unfog.calibrate(Sensor(SENSOR.rng, heavy).read(TRUE), TRUE, times=np.arange(300.0)),
    ):
        assert isinstance(found, Calibrated)
        assert isinstance(found._replace(pairs=0), Calibrated)
        known = found.problem(actions=3, features="product", standardise=False).knowledge()
        np.testing.assert_allclose(known.context_cov, found.context_cov, rtol=1e-12)
        np.testing.assert_allclose(known.bias_cov, found.bias_cov, rtol=1e-12)
        usual = found.problem(actions=3, features="product").knowledge()
        np.testing.assert_allclose(np.diag(usual.context_cov), 1.0, rtol=1e-12)
        assert not usual.context_mean.any()
        live = channel(found.channel, ["x", "y", "z"])
        np.testing.assert_array_equal(live.bias, found.bias)


def test_what_the_study_tells_is_not_told_twice() -> None:
    with pytest.raises(
        unfog.InputError, match=r"^noise_cov: is given; allowed: fields that the study does not"
    ):
        FOUND.problem(noise_cov=1.0)
    with pytest.raises(unfog.InputError, match=r"^standardise: 'no'; allowed: True or False"):
        FOUND.problem(standardise="no")  # type: ignore[call-overload]
    with pytest.raises(unfog.InputError, match=r"^world: 'gaussian'; allowed: unfog.GaussianProblem or"):
        FOUND.problem("gaussian")  # type: ignore[call-overload]
    with pytest.raises(unfog.InputError, match=r"^bias: \[1.0, 2.0\] has shape"):
        unfog.GaussianProblem(dim=3, bias=[1.0, 2.0])


def test_cycles_come_as_any_list_of_numbers() -> None:
    hours, noisy, true = np.arange(60.0), NOISY[:60], TRUE[:60]
    right = unfog.calibrate(noisy, true, times=hours, cycles=(24.0,)).constants
    cycles: Any
    for cycles in (np.array([24.0]), [np.int64(24)]):
        assert unfog.calibrate(noisy, true, times=hours, cycles=cycles).constants == right
    assert unfog.calibrate(noisy, true, times=hours, cycles=np.array([])).constants != right
    wrong: Any
    for wrong in (
        np.array([[24.0, 168.0]]),
        np.array(24.0),
        [[1], [1, 2]],
        "day",
        [True],
        np.array([np.nan]),
    ):
        with pytest.raises(unfog.InputError, match=r"^cycles: .*; allowed: periods: positive numbers"):
            unfog.calibrate(noisy, true, times=hours, cycles=wrong)
    with pytest.raises(unfog.InputError, match=r"^cycles: .*; allowed: none without times"):
        unfog.calibrate(noisy, true, cycles=np.array([24.0]))
