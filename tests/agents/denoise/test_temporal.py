"""The filter in time against a joint Gaussian over all moments at once, which knows nothing of states."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.problems import random_knowledge
from unfog.agents.base import Moment
from unfog.agents.denoise import Incomplete, Temporal
from unfog.channel.dynamics import Dynamics, Moving
from unfog.maths.arrays import Array
from unfog.validation import InputError

D = 3


def covariance(rng: np.random.Generator, scale: float) -> Array:
    """Anisotropic and correlated."""
    root = rng.normal(size=(D, D)) + np.diag([0.5, 1.0, 2.0])
    return scale * root @ root.T


def tempos() -> dict[str, Dynamics]:
    rng = np.random.default_rng(7)

    def cov(scale: float) -> Array:
        return covariance(rng, scale)

    everything = Dynamics(
        fast=Moving(cov(1.0), 3.0),
        bias=Moving(cov(0.7), np.inf, cov(0.02)),
        white=cov(0.1),
        level=Moving(cov(0.3), np.inf, cov(0.05)),
        error=Moving(cov(0.5), 1.5),
        periods=(24.0, 7.0),
        cycles=np.stack([cov(0.4), cov(0.2)]),
    )
    return {
        "all": everything,
        "no white": everything._replace(white=None, periods=(), cycles=None),
        "reverting bias": everything._replace(
            bias=Moving(cov(0.7), 40.0), level=None, periods=(), cycles=None
        ),
        "fresh contexts": Dynamics(Moving(cov(1.0), 0.0), Moving(cov(1.0), np.inf), cov(0.6)),
    }


TEMPOS = tempos()


class Story(NamedTuple):
    """Readings in the order of time."""

    at: Array  # (n,)
    noisy: Array  # (n, D)  not a number where it was lost
    truths: Array  # (n, D)


def story(seed: int, name: str, rounds: int = 12, lost: float = 0.2) -> Story:
    """Irregular steps, a long gap, two readings of one moment; values need not come from the model."""
    rng = np.random.default_rng(seed)
    steps = rng.exponential(1.5, size=rounds)
    steps[3], steps[rounds // 2] = 0.0, 60.0
    if TEMPOS[name].white is None:  # two readings of one moment would be the same
        steps[3] = 0.5
    noisy = 2 * rng.normal(size=(rounds, D)) + 1
    noisy[rng.random((rounds, D)) < lost] = np.nan
    truths = rng.normal(size=(rounds, D)) - 0.5
    truths[3] = truths[2]
    return Story(np.cumsum(steps), noisy, truths)


def between(part: Moving, s: Array, t: Array, first: float) -> Array:
    """Covariance of a part at times s and t, as a share of its covariance and of its walk."""
    if np.isinf(part.time):
        walk = 0.0 if part.walk is None else (np.minimum(s, t) - first)[..., None, None] * part.walk
        return part.cov + walk
    kept = (s == t).astype(float) if part.time == 0 else np.exp(-np.abs(s - t) / part.time)
    return kept[..., None, None] * part.cov


def joint(dynamics: Dynamics, at: Array) -> Array:
    """Covariance of all contexts, then all readings: (2, n, D, 2, n, D)."""
    s, t = np.meshgrid(at, at, indexing="ij")
    n = len(at)
    context = between(dynamics.fast, s, t, at[0])
    if dynamics.level is not None:
        context = context + between(dynamics.level, s, t, at[0])
    for period, cov in zip(dynamics.periods, () if dynamics.cycles is None else dynamics.cycles, strict=True):
        context = context + np.cos(2 * np.pi * (s - t) / period)[..., None, None] * cov
    error = between(dynamics.bias, s, t, at[0])
    if dynamics.error is not None:
        error = error + between(dynamics.error, s, t, at[0])
    if dynamics.white is not None:
        error = error + np.eye(n)[..., None, None] * dynamics.white
    blocks = np.array([[context, context], [context, context + error]])  # (2, 2, n, n, D, D)
    return np.broadcast_to(blocks, (2, 2, n, n, D, D)).transpose(0, 2, 4, 1, 3, 5)


def brute(
    dynamics: Dynamics, mean: Array, at: Array, noisy: Array, known: Array, wanted: int
) -> tuple[Array, Array]:
    """A context given readings and what is known of contexts, by conditioning one large Gaussian."""
    n = len(at)
    cov = joint(dynamics, at).reshape(2 * n * D, 2 * n * D)
    value = np.concatenate([(known - mean).ravel(), (noisy - mean).ravel()])
    seen, target = np.flatnonzero(~np.isnan(value)), wanted * D + np.arange(D)
    gain = np.linalg.lstsq(cov[np.ix_(seen, seen)], cov[np.ix_(seen, target)], rcond=1e-13)[0].T
    return mean + gain @ value[seen], cov[np.ix_(target, target)] - gain @ cov[np.ix_(seen, target)]


def told(dynamics: Dynamics) -> Any:
    return random_knowledge(3, D, 2 * D)._replace(dynamics=dynamics)


def hidden(n: int) -> Array:
    return np.full((n, D), np.nan)


def test_every_prediction_is_the_conditional_of_the_joint_gaussian() -> None:
    for name in TEMPOS:
        check_every_prediction_is_the_conditional_of_the_joint_gaussian(name)


def check_every_prediction_is_the_conditional_of_the_joint_gaussian(name: str) -> None:
    dynamics, tale, denoiser = TEMPOS[name], story(1, name), Temporal()
    known = told(dynamics)
    parameters = denoiser.setup(known, None)
    state, truths = denoiser.start(parameters), hidden(len(tale.at))
    for t, at in enumerate(tale.at):
        moment = Moment(np.asarray(t), np.asarray(at))
        found = denoiser.predict(parameters, denoiser.before(parameters, state, moment), tale.noisy[t])
        upto = slice(t + 1)
        mean, cov = brute(dynamics, known.context_mean, tale.at[upto], tale.noisy[upto], truths[upto], t)
        np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.cov, cov, rtol=0, atol=1e-9)
        state = denoiser.update(parameters, denoiser.before(parameters, state, moment), tale.noisy[t], None)
        if t % 4 == 1:  # revealed at once, sometimes in part
            truths[t] = np.where(np.arange(D) == t % 3, np.nan, tale.truths[t])
            state, now = denoiser.reopen(parameters, state, tale.noisy[t], hidden(1)[0], truths[t], moment)
            mean, cov = brute(dynamics, known.context_mean, tale.at[upto], tale.noisy[upto], truths[upto], t)
            np.testing.assert_allclose(now.mean, mean, rtol=0, atol=1e-8)
            np.testing.assert_allclose(now.cov, cov, rtol=0, atol=1e-8)


def test_true_contexts_late_in_any_order_and_in_part_are_exact() -> None:
    for seed in [2, 3]:
        for name in TEMPOS:
            check_true_contexts_late_in_any_order_and_in_part_are_exact(name, seed)


def check_true_contexts_late_in_any_order_and_in_part_are_exact(name: str, seed: int) -> None:
    dynamics, tale, denoiser = TEMPOS[name], story(seed, name), Temporal(window=12)
    rng, n = np.random.default_rng(seed), len(tale.at)
    known = told(dynamics)
    parameters = denoiser.setup(known, None)
    state = denoiser.start(parameters)
    moments = [Moment(np.asarray(t), np.asarray(at)) for t, at in enumerate(tale.at)]
    for t, moment in enumerate(moments):
        state = denoiser.update(parameters, denoiser.before(parameters, state, moment), tale.noisy[t], None)
    truths = hidden(n)
    for t in rng.permutation(n)[:7]:
        if t == 3:  # the moment of round 2, whose context is the same
            continue
        for shown in (rng.random(D) < 0.5, rng.random(D) < 0.6):
            before, after = truths[t].copy(), np.where(shown, tale.truths[t], truths[t])
            truths[t] = after
            state, now = denoiser.reopen(parameters, state, tale.noisy[t], before, after, moments[t])
            if np.array_equal(before, after, equal_nan=True):
                continue
            mean, cov = brute(dynamics, known.context_mean, tale.at, tale.noisy, truths, t)
            np.testing.assert_allclose(now.mean, mean, rtol=0, atol=1e-8)
            np.testing.assert_allclose(now.cov, cov, rtol=0, atol=1e-8)
    # What is believed of the moment to come is what all of it says, in whatever order it came.
    soon = np.asarray(tale.at[-1] + 0.7)
    moment = Moment(np.asarray(n), soon)
    reading = np.array([0.3, np.nan, 2.0])
    found = denoiser.predict(parameters, denoiser.before(parameters, state, moment), reading)
    everything = (
        np.append(tale.at, soon),
        np.vstack([tale.noisy, reading]),
        np.vstack([truths, hidden(1)]),
    )
    mean, cov = brute(dynamics, known.context_mean, *everything, n)
    np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.cov, cov, rtol=0, atol=1e-8)


def filtered(denoiser: Temporal, known: Any, tale: Story) -> tuple[Any, Any, list[Moment]]:
    """All readings, nothing revealed."""
    parameters = denoiser.setup(known, None)
    state = denoiser.start(parameters)
    moments = [Moment(np.asarray(t), np.asarray(at)) for t, at in enumerate(tale.at)]
    for moment, noisy in zip(moments, tale.noisy, strict=True):
        state = denoiser.update(parameters, denoiser.before(parameters, state, moment), noisy, None)
    return parameters, state, moments


def test_a_past_context_is_what_all_readings_since_say_of_it() -> None:
    dynamics, tale, denoiser = TEMPOS["all"], story(5, "all"), Temporal(window=12)
    known = told(dynamics)
    parameters, state, moments = filtered(denoiser, known, tale)
    truths = hidden(len(tale.at))
    truths[8] = tale.truths[8]
    state, _ = denoiser.reopen(parameters, state, tale.noisy[8], hidden(1)[0], truths[8], moments[8])
    for t in (1, 6, 7, 11):
        found = denoiser.smooth(parameters, state, moments[t], truths[t])
        mean, cov = brute(dynamics, known.context_mean, tale.at, tale.noisy, truths, t)
        np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.cov, cov, rtol=0, atol=1e-9)


def test_a_reading_may_have_a_noise_of_its_own() -> None:
    """Beside the joint Gaussian whose white part has that covariance in one round."""
    dynamics, tale, denoiser = TEMPOS["all"], story(6, "all", lost=0.0), Temporal()
    known, own = told(dynamics), covariance(np.random.default_rng(3), 2.0)
    parameters = denoiser.setup(known, None)
    state = denoiser.start(parameters)
    for t, at in enumerate(tale.at):
        moment = Moment(np.asarray(t), np.asarray(at), own if t == 4 else None)
        found = denoiser.predict(parameters, denoiser.before(parameters, state, moment), tale.noisy[t])
        state = denoiser.update(parameters, denoiser.before(parameters, state, moment), tale.noisy[t], None)
        if t < 4:
            continue
        cov = joint(dynamics, tale.at[: t + 1]).copy()
        cov[1, 4, :, 1, 4, :] += own - np.asarray(dynamics.white)
        cov = cov.reshape(2 * (t + 1) * D, -1)
        seen, target = (t + 1) * D + np.arange((t + 1) * D), t * D + np.arange(D)
        gain = np.linalg.solve(cov[np.ix_(seen, seen)], cov[np.ix_(seen, target)]).T
        away = (tale.noisy[: t + 1] - known.context_mean).ravel()
        np.testing.assert_allclose(found.mean, known.context_mean + gain @ away, rtol=0, atol=1e-9)


def test_told_nothing_of_time_it_is_the_denoiser_of_incomplete_records() -> None:
    known, rng = random_knowledge(4, D, 2 * D), np.random.default_rng(5)
    ours, theirs = Temporal(), Incomplete(pairs=True)
    one, other = ours.setup(known, None), theirs.setup(known, None)
    state, same = ours.start(one), theirs.start(other)
    for t in range(15):
        noisy = rng.normal(size=(4, D))
        noisy[rng.random((4, D)) < 0.3] = np.nan
        found, right = ours.predict(one, state, noisy), theirs.predict(other, same, noisy)
        np.testing.assert_allclose(found.mean, right.mean, rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.cov, np.broadcast_to(right.cov, (4, D, D)), rtol=0, atol=1e-9)
        state, same = ours.update(one, state, noisy, None), theirs.update(other, same, noisy, None)
        truth = np.where(rng.random((4, 1)) < 0.4, rng.normal(size=(4, D)), np.nan)
        nothing = np.full((4, D), np.nan)
        state, now = ours.correct(one, state, noisy, nothing, truth)
        same, right = theirs.correct(other, same, noisy, nothing, truth)
        shown = ~np.isnan(truth).any(-1)
        np.testing.assert_allclose(now.mean[shown], right.mean[shown], rtol=0, atol=1e-9)
        assert t < 14 or shown.any()


def test_a_batch_is_its_trials_whoever_is_shown_what() -> None:
    """Trials of one batch that lose other coordinates, and have other contexts shown, late."""
    dynamics, denoiser, rng = TEMPOS["all"], Temporal(window=6), np.random.default_rng(8)
    known, trials, rounds = told(dynamics), 4, 10
    parameters = denoiser.setup(known, None)
    noisy, truths = rng.normal(size=(rounds, trials, D)), rng.normal(size=(rounds, trials, D))
    noisy[rng.random(noisy.shape) < 0.2] = np.nan
    truths[rng.random(truths.shape) < 0.6] = np.nan
    at = np.cumsum(rng.exponential(2.0, size=(rounds, trials)), axis=0)

    def play(which: slice | int) -> Any:
        state = denoiser.start(parameters)
        for t in range(rounds):
            moment = Moment(np.asarray(t), at[t, which])
            ready = denoiser.before(parameters, state, moment)
            state = denoiser.update(parameters, ready, noisy[t, which], None)
            if t >= 3:
                past, seen = Moment(np.asarray(t - 3), at[t - 3, which]), noisy[t - 3, which]
                blank = np.full_like(seen, np.nan)
                state, _ = denoiser.reopen(parameters, state, seen, blank, truths[t - 3, which], past)
        return state.belief

    together = play(slice(None))
    for trial in range(trials):
        alone = play(trial)
        np.testing.assert_allclose(together.mean[trial], alone.mean, rtol=0, atol=1e-9)
        np.testing.assert_allclose(together.cov()[trial], alone.cov(), rtol=0, atol=1e-9)


def test_beyond_the_window_a_pair_is_an_observation_of_the_past() -> None:
    """With fresh contexts and a bias that stays, that is one more observation of the bias, exactly."""
    dynamics, denoiser = TEMPOS["fresh contexts"], Temporal(window=2)
    known, tale = told(dynamics), story(9, "fresh contexts", rounds=6, lost=0.0)
    tale = tale._replace(at=np.arange(6.0))
    parameters, state, moments = filtered(denoiser, known, tale)
    assert dynamics.white is not None
    state, now = denoiser.reopen(
        parameters,
        state,
        tale.noisy[0],
        hidden(1)[0],
        tale.truths[0],
        Moment(moments[0].number, moments[0].measured_at),
    )
    np.testing.assert_array_equal(now.mean, tale.truths[0])
    assert state.stale == 1
    alone, pair = np.linalg.inv(dynamics.fast.cov + dynamics.white), np.linalg.inv(dynamics.white)
    precision = np.linalg.inv(dynamics.bias.cov) + 6 * alone + pair
    away = alone @ (tale.noisy - known.context_mean).sum(0) + pair @ (tale.noisy[0] - tale.truths[0])
    bias = slice(D, 2 * D)
    np.testing.assert_allclose(state.belief.mean[bias], np.linalg.solve(precision, away), rtol=0, atol=1e-8)
    np.testing.assert_allclose(state.belief.cov()[bias, bias], np.linalg.inv(precision), rtol=0, atol=1e-8)


def test_the_worth_of_a_true_context_is_what_it_takes_from_the_next_ones_variance() -> None:
    dynamics, ahead = TEMPOS["reverting bias"], 5.0
    tale, denoiser, known = story(10, "reverting bias"), Temporal(ahead=ahead), told(dynamics)
    parameters, state, _ = filtered(denoiser, known, tale)
    n = len(tale.at)
    at, noisy = np.append(tale.at, tale.at[-1] + ahead), np.vstack([tale.noisy, np.zeros(D)])
    spread = []
    for shown in (hidden(n + 1), np.vstack([hidden(n - 1), tale.truths[-1:], hidden(1)])):
        cov = brute(dynamics, known.context_mean, at, noisy, shown, n)[1]
        spread.append((np.diag(cov) / np.diag(known.context_cov)).sum())
    assert spread[0] - spread[1] > 0.01
    np.testing.assert_allclose(denoiser.value_of_reveal(parameters, state), spread[0] - spread[1], atol=1e-9)


def test_time_starts_where_the_constants_hold() -> None:
    """A bias that walks has walked since then, before the first reading."""
    dynamics = TEMPOS["all"]._replace(periods=(), cycles=None)
    later, moment = Temporal(), Moment(np.asarray(0), np.asarray(100.0))
    found = []
    for told_dynamics in (dynamics._replace(since=40.0), dynamics):
        known = told(told_dynamics)
        parameters = later.setup(known, None)
        ready = later.before(parameters, later.start(parameters), moment)
        found.append(later.predict_reading(parameters, ready)[1])
    walks: Any = dynamics.bias.walk, dynamics.level and dynamics.level.walk
    np.testing.assert_allclose(found[0] - found[1], 60 * np.diag(sum(walks)), rtol=1e-9)


@pytest.mark.parametrize("rounds", [3_000, pytest.param(10**6, marks=pytest.mark.soak)])
def test_the_belief_stays_a_belief(rounds: int) -> None:
    """With parts that hardly move beside ones that do, and contexts revealed now and then."""
    dynamics = Dynamics(
        fast=Moving(np.diag([1.0, 1e-3, 1e3]), 2.0),
        bias=Moving(np.eye(D), np.inf, 1e-12 * np.eye(D)),
        white=1e-8 * np.eye(D),
        level=Moving(np.eye(D), np.inf, 1e-9 * np.eye(D)),
    )
    denoiser, rng = Temporal(window=0), np.random.default_rng(11)
    parameters = denoiser.setup(told(dynamics), None)
    state, blank = denoiser.start(parameters), np.full(D, np.nan)
    for t in range(rounds):
        noisy = rng.normal(size=D)
        state = denoiser.update(parameters, state, noisy, None)
        if t % 7 == 0:
            state, _ = denoiser.correct(parameters, state, noisy, blank, rng.normal(size=D))
    sizes = np.linalg.svd(state.belief.root, compute_uv=False)
    assert np.isfinite(state.belief.mean).all()
    assert np.isfinite(sizes).all()
    assert sizes.min() > 0


def test_bad_input_is_refused_by_name() -> None:
    denoiser, tale = Temporal(window=3), story(1, "all")
    parameters, state, _ = filtered(denoiser, told(TEMPOS["all"]), tale)
    with pytest.raises(
        InputError, match=r"^measured_at: .* allowed: times that never go back, on the calibration's"
    ):
        denoiser.before(parameters, state, Moment(np.asarray(12), np.asarray(tale.at[-1] - 1)))
    fresh = denoiser.start(parameters)
    for no_time in (np.nan, np.inf, -np.inf):
        for now in (state, fresh):
            with pytest.raises(InputError, match=r"^measured_at: -?(nan|inf); allowed: times: numbers"):
                denoiser.before(parameters, now, Moment(np.asarray(12), np.asarray(no_time)))
    since = denoiser.setup(told(TEMPOS["all"]._replace(since=40.0)), None)
    with pytest.raises(InputError, match=r"^measured_at: 0\.0 after 40\.0, where the calibration ended"):
        denoiser.before(since, denoiser.start(since), Moment(np.asarray(0), np.asarray(0.0)))
    soon = np.asarray(tale.at[-1] + 1)
    for noise in (np.eye(2), -np.eye(D), np.full((D, D), np.nan), np.triu(np.ones((D, D)))):
        with pytest.raises(InputError, match=r"^noise: .* allowed: a covariance \(3, 3\)"):
            denoiser.before(parameters, state, Moment(np.asarray(12), soon, noise))
    exact = denoiser.before(parameters, state, Moment(np.asarray(12), soon, np.zeros((D, D))))
    assert np.isfinite(denoiser.predict(parameters, exact, np.ones(D)).cov).all()
    with pytest.raises(InputError, match=r"^reveal: round 12\.0; allowed: a round that has been played$"):
        denoiser.reopen(
            parameters, state, tale.noisy[0], hidden(1)[0], tale.truths[0], Moment(np.asarray(12))
        )
    bad: tuple[Any, ...] = ({"window": -1}, {"window": 1.5}, {"lag": 32}, {"ahead": -1.0}, {"pairs": 1})
    for settings in bad:
        with pytest.raises(InputError, match=f"^{next(iter(settings))}: "):
            Temporal(**settings)
