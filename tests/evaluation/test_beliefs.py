"""Beliefs about contexts against the joint Gaussian of everything, and the denoiser round by round."""

import numpy as np
import pytest

from tests.evaluation.logs import channel
from unfog.agents.denoise.incomplete import Incomplete
from unfog.channel.channel import Channel
from unfog.evaluation.beliefs import infer_by_round, infer_contexts, units_of
from unfog.evaluation.log import DecisionLog
from unfog.maths.arrays import Array, Bools

NAN = np.nan


def gappy(d: int = 2, n: int = 7) -> DecisionLog:
    """Gaps, truths whole, in part and not at all, three units, one of them with a single round."""
    rng = np.random.default_rng(5)
    noisy, true = rng.normal(2.0, 1.5, (n, d)), rng.normal(1.0, 1.5, (n, d))
    noisy[1, 0] = noisy[4, 1] = noisy[5, 0] = noisy[5, 1] = NAN
    true[[0, 2]] = NAN
    true[3, 0] = true[4, 1] = NAN
    unit = np.array([0, 1, 0, 1, 0, 1, 2])
    arm = np.zeros(n, np.intp)
    return DecisionLog(("x", "y"), ("a",), noisy, arm, np.zeros(n), np.ones(n), true=true, unit=unit)


def joint(told: Channel, log: DecisionLog, number: int, *, own_truth: bool) -> tuple[Array, Array]:
    """A round's context: the Gaussian of biases, contexts and readings, given all that is known."""
    n, d = log.noisy.shape
    assert log.unit is not None
    assert log.true is not None
    units = int(log.unit.max()) + 1
    by_unit, by_round = np.eye(units)[log.unit], np.eye(n)
    contexts, noise = np.kron(by_round, told.context_cov), np.kron(by_round, told.noise_cov)
    readings = contexts + noise + np.kron(by_unit @ by_unit.T, told.bias_cov)
    cov = np.block([[contexts, contexts], [contexts, readings]])
    mean = np.concat([np.tile(told.context_mean, n), np.tile(told.context_mean + told.bias, n)])
    true = log.true.copy()
    if not own_truth:
        true[number] = NAN
    value = np.concat([true.ravel(), log.noisy.ravel()])
    there, mine = ~np.isnan(value), slice(number * d, (number + 1) * d)
    gain = np.linalg.solve(cov[np.ix_(there, there)], cov[there][:, mine]).T
    found = mean[mine] + gain @ (value - mean)[there]
    return found, cov[mine, mine] - gain @ cov[there][:, mine]


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("whole", [True, False])
def test_beliefs_are_those_of_the_joint_gaussian(own: bool, whole: bool) -> None:
    """`infer_by_round` knows all but the true context of its own round."""
    told, log = channel(), gappy()
    found, units = (infer_contexts if whole else infer_by_round)(told, log, own=own), units_of(told, own)
    for number in range(log.rounds):
        mean, cov = joint(told, log, number, own_truth=whole)
        one = found.rows(np.array([number]))
        np.testing.assert_allclose(units.outside(one.mean[0]), mean, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(one.cov[0] * units.scale * units.scale[:, None], cov, atol=1e-9)


def test_a_true_context_is_not_seen_through_the_bias() -> None:
    """A unit of one round and a wide bias: its true context would tell the bias, and that the context."""
    told = channel()._replace(bias_cov=1e4 * np.eye(2))
    log = gappy()
    assert log.true is not None
    other = log._replace(true=np.where(np.arange(7)[:, None] == 6, 50.0, log.true))
    np.testing.assert_allclose(
        infer_by_round(told, log).mean[6], infer_by_round(told, other).mean[6], atol=1e-9
    )


def test_the_last_round_is_what_the_denoiser_says_of_it() -> None:
    log = gappy()._replace(unit=None)
    assert log.true is not None
    log.true[-1] = NAN
    told = channel()
    units, denoiser = units_of(told, own=False), Incomplete(pairs=True)
    parameters = denoiser.setup(told.to_knowledge(units, prior_mean=np.zeros(0), prior_cov=np.zeros(0)), None)
    state, noisy = denoiser.start(parameters), units.read(log.noisy)
    for reading, true in zip(noisy[:-1], units.inside(log.true)[:-1], strict=True):
        state = denoiser.update(parameters, state, reading, true)
    mean, cov = denoiser.predict(parameters, state, noisy[-1])
    for found in (infer_contexts(told, log), infer_by_round(told, log)):
        np.testing.assert_allclose(found.mean[-1], mean, atol=1e-11)
        np.testing.assert_allclose(found.covs[found.kind[-1]], cov, atol=1e-11)


def test_patterns_of_many_coordinates_are_told_apart() -> None:
    """Of forty coordinates the first is lost in a round, the last in another, or known: each as if alone."""
    d = 40
    one, told = np.eye(d), np.zeros(d)
    noisy, true = np.ones((4, d)), np.full((4, d), NAN)
    noisy[1, d - 1] = noisy[3, 0] = NAN
    true[2, d - 1] = 7.0
    log = DecisionLog((), ("a",), noisy, np.zeros(4, np.intp), np.zeros(4), np.ones(4), true=true)
    there = Channel(told, one + 0.5, one, 1e-9 * one, told)
    found = infer_contexts(there, log).mean
    for t in range(4):
        alone = log._replace(noisy=noisy[[t]], true=true[[t]], arm=log.arm[:1])
        np.testing.assert_allclose(found[t], infer_contexts(there, alone).mean[0], atol=1e-6)
    assert 0.1 < found[1, d - 1] < found[0, d - 1] < found[2, d - 1]


def readings(gaps: Bools, scale: float = 1.0) -> DecisionLog:
    rng = np.random.default_rng(2)
    noisy = rng.multivariate_normal([3.0, -40.0], [[1.0, 9.0], [9.0, 100.0]], len(gaps)) * scale
    rest = np.zeros(len(gaps), np.intp), np.zeros(len(gaps)), np.ones(len(gaps))
    return DecisionLog(("x", "y"), ("a",), np.where(gaps, NAN, noisy), *rest)


def test_without_a_channel_readings_stand_for_themselves() -> None:
    log = readings(np.zeros((50, 2), bool))
    np.testing.assert_allclose(infer_contexts(None, log, own=True).mean, log.noisy, rtol=1e-12)
    found = infer_contexts(None, log).mean
    np.testing.assert_allclose(found.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose((found**2).mean(axis=0), 1.0, rtol=1e-12)


def test_without_a_channel_gaps_are_filled_in_from_the_rest() -> None:
    """By the line of least squares over rounds that have both, nearly: here correlation is 0.9."""
    gaps = np.zeros((4000, 2), bool)
    gaps[::4, 1] = True
    found = infer_contexts(None, readings(gaps), own=True).mean
    whole = readings(np.zeros((4000, 2), bool)).noisy
    line = np.polyfit(whole[~gaps[:, 1]][:, 0], whole[~gaps[:, 1]][:, 1], 1)
    np.testing.assert_allclose(found[::4, 1], np.polyval(line, whole[::4, 0]), atol=1.0)
    np.testing.assert_allclose(found[1::4], whole[1::4], rtol=1e-12)


@pytest.mark.parametrize("own", [False, True])
def test_a_coordinate_that_is_always_lost_or_constant_says_nothing(own: bool) -> None:
    for value in (NAN, 0.1):
        log = readings(np.zeros((30, 2), bool))
        log.noisy[:, 1] = value
        found = infer_contexts(None, log, own=own).mean
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found[:, 1], found[0, 1], atol=1e-12)
        assert abs(found[0, 1]) <= 0.1 + 1e-12
