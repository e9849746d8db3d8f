"""What a better sensor is worth, where the truth is known."""

import numpy as np
import pytest

from tests.evaluation.logs import World, channel
from unfog.channel.channel import Channel
from unfog.evaluation.context import EvaluationContext
from unfog.evaluation.model import fit
from unfog.evaluation.policies import silent
from unfog.evaluation.sensor import (
    FEWER,
    LEVELS,
    READ,
    _scores,
    curve,
    ladder,
    models,
    own_noise,
    sensor,
    stretches,
)
from unfog.maths.arrays import Array
from unfog.validation import InputError

WORLD = World(d=2, arms=3)
WORLD.theta[:, 0] = -WORLD.theta[:, 1:] @ WORLD.channel.context_mean  # no arm is best but by its context


def worth(world: World, level: float, n: int = 300_000) -> float:
    """What the best arm by the denoised context pays, by brute force, with (1 + level) of the noise."""
    told, rng = world.channel, np.random.default_rng(8)
    true = rng.multivariate_normal(told.context_mean, told.context_cov, n)
    noise = (1 + level) * told.noise_cov
    noisy = true + rng.multivariate_normal(np.zeros(world.d), noise, n)
    gain = told.context_cov @ np.linalg.inv(told.context_cov + noise)
    denoised = told.context_mean + (noisy - told.context_mean) @ gain.T
    best = world.scores(denoised).argmax(axis=1)
    return float(world.scores(true)[np.arange(n), best].mean())


def certain(told: Channel) -> Channel:
    """The same, with its bias known."""
    return told._replace(bias_cov=1e-6 * np.eye(len(told.bias)))


def test_a_sensors_own_noise_is_its_variance_given_the_others() -> None:
    """By regression on the others' noise; all of it for all sensors."""
    told = channel(3)
    noise = told.noise_cov
    np.testing.assert_array_equal(own_noise(told, "", ("x", "y", "z")), noise)
    others = [0, 2]
    slope = np.linalg.solve(noise[np.ix_(others, others)], noise[others, 1])
    expected = np.zeros((3, 3))
    expected[1, 1] = noise[1, 1] - slope @ noise[others, 1]
    np.testing.assert_allclose(own_noise(told, "y", ("x", "y", "z")), expected, rtol=1e-10)
    assert np.linalg.eigvalsh(noise - expected).min() > -1e-12


def test_refusals() -> None:
    evaluation = EvaluationContext(WORLD.log(20, 1))
    with pytest.raises(InputError, match=r"^channel: No channel is told"):
        sensor(evaluation)
    with pytest.raises(InputError, match=r"^sensor: speed; allowed: all, or one of steps, sleep"):
        sensor(EvaluationContext(WORLD.log(20, 1), WORLD.channel), "speed")


def test_values_at_more_noise_are_what_such_a_sensor_earns() -> None:
    """One log of 8,000 rounds: what there is and what more noise costs, paired, are both within four standard
    errors, wrong once in 15,000. The model that chooses is fitted, which costs less than that.
    """
    evaluation, extra = EvaluationContext(WORLD.log(8000, 2), certain(WORLD.channel)), WORLD.channel.noise_cov
    plain, louder = (_scores(evaluation, extra, level, silent) for level in (0.0, 2.0))
    expected, more = worth(WORLD, 0.0), worth(WORLD, 2.0)
    for scores, truth in ((plain, expected), (plain - louder, expected - more)):
        assert abs(scores.mean() - truth) < 4 * scores.std() / np.sqrt(8000)
    assert expected - more > 4 * (plain - louder).std() / np.sqrt(8000)


@pytest.mark.parametrize("level", [-1.0, -0.5, 2.0])
@pytest.mark.parametrize("actions", [None, np.array([[1.0, 0.5], [-0.4, 2.0], [0.7, -1.0]])])
def test_what_the_model_says_is_what_a_world_like_it_pays(level: float, actions: Array | None) -> None:
    """Rewards without noise, contexts known: the model is the world, in deviations or in its own units."""
    log = WORLD.log(3000, 3, shown=1.0)
    assert log.true is not None
    world = World(d=2, arms=3)
    if actions is not None:
        world.theta = np.pad(actions * [2.0, -1.0], ((0, 0), (1, 0)))
    log = log._replace(reward=world.scores(log.true)[np.arange(3000), log.arm])
    map_ = ("per_arm", None) if actions is None else ("product", actions)
    evaluation = EvaluationContext(log, certain(WORLD.channel), *map_)
    told = certain(WORLD.channel)
    whole, _ = models(evaluation.data, stretches(3000))
    (found,) = curve(evaluation, told, [(1 + level) * told.noise_cov], whole, 100_000)
    np.testing.assert_allclose(found, worth(world, level), atol=0.03)


def test_models_without_a_stretch_are_fitted_without_it() -> None:
    """Against a fit of the other rounds, of readings alone, where all rounds weigh alike."""
    data, parts = EvaluationContext(WORLD.log(400, 4), certain(WORLD.channel)).data, stretches(400)
    whole, others = models(data, parts)
    np.testing.assert_allclose(whole.theta, fit(data, np.arange(400)).theta, rtol=1e-9)
    for part, found in zip(parts[:3], others, strict=False):
        expected = fit(data, np.setdiff1d(np.arange(400), part))
        np.testing.assert_allclose(found.theta, expected.theta, rtol=1e-8, atol=1e-9)
        assert found.offset == pytest.approx(expected.offset)


def test_the_error_knows_that_the_curve_is_uncertain() -> None:
    """Against the jackknife by hand: the whole curve anew without each stretch."""
    told = certain(WORLD.channel)
    evaluation, parts = EvaluationContext(WORLD.log(1500, 5), told), stretches(1500)
    noises = [(1 + level) * told.noise_cov for level in (*LEVELS, *READ)]
    scores = np.stack([_scores(evaluation, told.noise_cov, level, silent) for level in LEVELS])
    left = []
    for part, one in zip(parts, models(evaluation.data, parts)[1], strict=True):
        said, rest = curve(evaluation, told, noises, one, FEWER), np.setdiff1d(np.arange(1500), part)
        b, a = np.polyfit(said[: len(LEVELS)], scores[:, rest].mean(axis=1), 1)
        left.append(a + b * said[len(LEVELS)])
    expected = np.sqrt((len(parts) - 1) * np.var(left))
    assert sensor(evaluation).read["model"][0].se == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
def test_a_perfect_sensor_is_read_off() -> None:
    """Two logs of 4,000 rounds: their mean within four of its stated standard errors by the model's curve and
    the cubic one, and more by each curve than the sensor as it is earns.
    """
    found = [sensor(EvaluationContext(WORLD.log(4000, 20 + i), certain(WORLD.channel))) for i in range(2)]
    at, best = int(np.flatnonzero(READ == -1.0)[0]), worth(WORLD, -1.0)
    for name in ("model", "cubic"):
        means, errors = np.array([one.read[name][at] for one in found]).T
        assert abs(means.mean() - best) < 4 * np.sqrt((errors**2).sum()) / 2
    assert all(one.worth[name][at].mean > 0 for one in found for name in one.worth)
    np.testing.assert_allclose(
        [one.read["linear"][at].mean - one.values[0].mean for one in found],
        [one.worth["linear"][at].mean for one in found],
    )


def test_the_ladder_goes_up() -> None:
    """Of 4,000 rounds half of whose true contexts are known: each rung within four standard errors of what it
    earns, the true one by the rounds that it is known in.
    """
    log = WORLD.log(4000, 6, shown=0.5)
    rungs = {rung.name: rung for rung in ladder(EvaluationContext(log, certain(WORLD.channel)))}
    assert list(rungs) == ["naive", "denoised", "denoised, known", "true"]
    for name, level in (("denoised", 0.0), ("denoised, known", 0.0), ("true", -1.0)):
        rung = rungs[name]
        assert abs(rung.value.mean - worth(WORLD, level)) < 4 * rung.value.se
    assert rungs["true"].rounds == int(log.known().sum())
    assert rungs["true"].value.mean > rungs["denoised"].value.mean
