"""The filter in time against a joint Gaussian over all moments at once, which knows nothing of states."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.problems import random_knowledge
from unfog.agents.denoise import Temporal
from unfog.agents.parts import Moment
from unfog.maths.arrays import Array
from unfog.model.tempo import Moving, Tempo

D = 3


def covariance(rng: np.random.Generator, scale: float) -> Array:
    """Anisotropic and correlated."""
    root = rng.normal(size=(D, D)) + np.diag([0.5, 1.0, 2.0])
    return scale * root @ root.T


def tempos() -> dict[str, Tempo]:
    rng = np.random.default_rng(7)

    def cov(scale: float) -> Array:
        return covariance(rng, scale)

    everything = Tempo(
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
        "fresh contexts": Tempo(Moving(cov(1.0), 0.0), Moving(cov(1.0), np.inf), cov(0.6)),
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


def joint(tempo: Tempo, at: Array) -> Array:
    """Covariance of all contexts, then all readings: (2, n, D, 2, n, D)."""
    s, t = np.meshgrid(at, at, indexing="ij")
    n = len(at)
    context = between(tempo.fast, s, t, at[0])
    if tempo.level is not None:
        context = context + between(tempo.level, s, t, at[0])
    for period, cov in zip(tempo.periods, () if tempo.cycles is None else tempo.cycles, strict=True):
        context = context + np.cos(2 * np.pi * (s - t) / period)[..., None, None] * cov
    error = between(tempo.bias, s, t, at[0])
    if tempo.error is not None:
        error = error + between(tempo.error, s, t, at[0])
    if tempo.white is not None:
        error = error + np.eye(n)[..., None, None] * tempo.white
    blocks = np.array([[context, context], [context, context + error]])  # (2, 2, n, n, D, D)
    return np.broadcast_to(blocks, (2, 2, n, n, D, D)).transpose(0, 2, 4, 1, 3, 5)


def brute(
    tempo: Tempo, mean: Array, at: Array, noisy: Array, known: Array, wanted: int
) -> tuple[Array, Array]:
    """A context given readings and what is known of contexts, by conditioning one large Gaussian."""
    n = len(at)
    cov = joint(tempo, at).reshape(2 * n * D, 2 * n * D)
    value = np.concatenate([(known - mean).ravel(), (noisy - mean).ravel()])
    seen, target = np.flatnonzero(~np.isnan(value)), wanted * D + np.arange(D)
    gain = np.linalg.lstsq(cov[np.ix_(seen, seen)], cov[np.ix_(seen, target)], rcond=1e-13)[0].T
    return mean + gain @ value[seen], cov[np.ix_(target, target)] - gain @ cov[np.ix_(seen, target)]


def told(tempo: Tempo) -> Any:
    return random_knowledge(3, D, 2 * D)._replace(tempo=tempo)


def hidden(n: int) -> Array:
    return np.full((n, D), np.nan)


@pytest.mark.parametrize("name", TEMPOS)
def test_every_prediction_is_the_conditional_of_the_joint_gaussian(name: str) -> None:
    tempo, tale, denoiser = TEMPOS[name], story(1, name), Temporal()
    known = told(tempo)
    parameters = denoiser.setup(known, None)
    state, truths = denoiser.start(parameters), hidden(len(tale.at))
    for t, at in enumerate(tale.at):
        moment = Moment(np.asarray(t), np.asarray(at))
        found = denoiser.predict(parameters, denoiser.before(parameters, state, moment), tale.noisy[t])
        upto = slice(t + 1)
        mean, cov = brute(tempo, known.context_mean, tale.at[upto], tale.noisy[upto], truths[upto], t)
        np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.cov, cov, rtol=0, atol=1e-9)
        state = denoiser.update(parameters, denoiser.before(parameters, state, moment), tale.noisy[t], None)
        if t % 4 == 1:  # revealed at once, sometimes in part
            truths[t] = np.where(np.arange(D) == t % 3, np.nan, tale.truths[t])
            state, now = denoiser.reopen(parameters, state, tale.noisy[t], hidden(1)[0], truths[t], moment)
            mean, cov = brute(tempo, known.context_mean, tale.at[upto], tale.noisy[upto], truths[upto], t)
            np.testing.assert_allclose(now.mean, mean, rtol=0, atol=1e-8)
            np.testing.assert_allclose(now.cov, cov, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", TEMPOS)
@pytest.mark.parametrize("seed", [2, 3])
def test_true_contexts_late_in_any_order_and_in_part_are_exact(name: str, seed: int) -> None:
    tempo, tale, denoiser = TEMPOS[name], story(seed, name), Temporal(window=12)
    rng, n = np.random.default_rng(seed), len(tale.at)
    known = told(tempo)
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
            mean, cov = brute(tempo, known.context_mean, tale.at, tale.noisy, truths, t)
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
    mean, cov = brute(tempo, known.context_mean, *everything, n)
    np.testing.assert_allclose(found.mean, mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.cov, cov, rtol=0, atol=1e-8)
