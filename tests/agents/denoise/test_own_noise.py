"""Readings with a noise of their own: joint Gaussians with another noise covariance in each round."""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from tests.agents.world import KNOWN, ROUNDS, SAMPLE, TRIALS, begin, make_world
from tests.problems import given, spd
from unfog.agents import round as rounds
from unfog.agents.agent import Agent
from unfog.agents.base import Pooled, Privilege, TakesNoise
from unfog.agents.catalogue import AGENTS
from unfog.agents.denoise import (
    Adaptive,
    Drift,
    Empirical,
    Exact,
    Fleet,
    Incomplete,
    KnownBiasAtoms,
    Mixture,
    PlugIn,
    Robust,
)
from unfog.agents.denoise.fleet import moments
from unfog.agents.round import Observation
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths.arrays import Array
from unfog.maths.mixture import Mixture as Law
from unfog.maths.trees import map_arrays
from unfog.validation import InputError

D, N = 3, 5
HIDDEN = np.full(D, np.nan)


class Story:
    """Rounds of one device whose bias may walk, each with a noise of its own but the second."""

    def __init__(self, known: Knowledge, walk: float = 0.0) -> None:
        rng = np.random.default_rng(4)
        self.known, self.walk = known, walk
        self.noises: list[Array | None] = [spd(rng, D, 0.05, 8.0) for _ in range(N)]
        self.noises[1] = None
        self.noisy = rng.normal(1.0, 2.0, (N, D))
        self.contexts = rng.normal(1.0, 1.0, (N, D))

    def noise(self, t: int) -> Array:
        noise = self.noises[t]
        return self.known.noise_cov if noise is None else noise

    def joint(self) -> tuple[Array, Array]:
        """N over (gamma_1 .. gamma_n, c_1 .. c_n, chat_1 .. chat_n)."""
        known = self.known
        steps = [known.bias_cov] + [self.walk * known.bias_cov] * (N - 1)
        blocks = [*steps, *[known.context_cov] * N, *(self.noise(t) for t in range(N))]
        cov = np.zeros((3 * N * D, 3 * N * D))
        for i, block in enumerate(blocks):
            cov[i * D : i * D + D, i * D : i * D + D] = block
        one, eye = np.zeros((3 * N, 3 * N)), np.eye(D)
        one[:N, :N] = np.tril(np.ones((N, N)))
        one[N : 2 * N, N : 2 * N] = np.eye(N)
        one[2 * N :, :N], one[2 * N :, N : 2 * N], one[2 * N :, 2 * N :] = one[:N, :N], np.eye(N), np.eye(N)
        rows = np.kron(one, eye)
        mean = np.concatenate([np.zeros(N * D), np.tile(known.context_mean, N), np.zeros(N * D)])
        return rows @ mean, rows @ cov @ rows.T

    def posterior(self, t: int, noisy: Array, truths: Array) -> tuple[Context, Context]:
        """The context and the bias of round t, given all that is a number."""
        values = np.concatenate([np.full(N * D, np.nan), truths.ravel(), noisy.ravel()])
        seen = ~np.isnan(values)
        mean, cov = given(*self.joint(), np.eye(len(values))[seen], values[seen])
        parts = (slice((i + t) * D, (i + t + 1) * D) for i in (N, 0))
        context, bias = (Context(mean[part], cov[part, part]) for part in parts)
        return context, bias


def parameters_of(denoiser: Any, parameters: Any, noise: Array | None) -> Any:
    return parameters if noise is None else denoiser.with_noise(parameters, noise)


def same(belief: Context, right: Context, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(belief.mean, right.mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(belief.cov, right.cov, rtol=tolerance, atol=tolerance)


def until(values: Array, t: int) -> Array:
    """The rows before t; the others hidden."""
    return np.where(np.arange(N)[:, None] < t, values, np.nan)


def test_beliefs_are_those_of_the_joint_gaussian(known: Knowledge) -> None:
    denoisers: list[Any] = [
        *(Exact(), Exact(pairs=True), Incomplete(), Incomplete(pairs=True)),
        *(Drift(step=0.0), Drift(step=0.3), Drift(step=0.3, pairs=True)),
    ]
    for denoiser in denoisers:
        story = Story(known, denoiser.step if isinstance(denoiser, Drift) else 0.0)
        usual = denoiser.setup(known, None)
        state = denoiser.start(usual)
        for t in range(N):
            truths = until(story.contexts, t if denoiser.pairs else 0)
            parameters = parameters_of(denoiser, usual, story.noises[t])
            right, _ = story.posterior(t, until(story.noisy, t + 1), truths)
            same(denoiser.predict(parameters, state, story.noisy[t]), right)
            _, bias = story.posterior(t, until(story.noisy, t), truths)
            same(Context(*denoiser.bias(usual, state)), bias)
            if isinstance(denoiser, Exact | Drift):  # the others do not say it precisely
                mean, variance = denoiser.predict_reading(parameters, state)
                np.testing.assert_allclose(mean, known.context_mean + bias.mean, rtol=1e-10)
                total = known.context_cov + story.noise(t) + bias.cov
                np.testing.assert_allclose(variance, np.diag(total), rtol=1e-10)
            context = story.contexts[t] if denoiser.pairs else None
            state = denoiser.update(parameters, state, story.noisy[t], context)


def test_the_plug_in_has_the_gain_of_the_readings_noise(known: Knowledge) -> None:
    for pairs in (False, True):
        story, denoiser = Story(known), PlugIn(pairs=pairs)
        usual = denoiser.setup(known, None)
        state = denoiser.start(usual)
        for t in range(N):
            parameters, cov = parameters_of(denoiser, usual, story.noises[t]), known.context_cov
            gain = np.linalg.solve(cov + story.noise(t), cov).T
            _, bias = story.posterior(t, until(story.noisy, t), until(story.contexts, t if pairs else 0))
            mean = known.context_mean + gain @ (story.noisy[t] - known.context_mean - bias.mean)
            right = Context(mean, cov - gain @ cov + gain @ bias.cov @ gain.T)
            same(denoiser.predict(parameters, state, story.noisy[t]), right)
            state = denoiser.update(parameters, state, story.noisy[t], story.contexts[t])


def test_late_truths_and_gaps_are_those_of_the_joint_gaussian(known: Knowledge) -> None:
    """True contexts in part and in any order; coordinates that were lost, whatever is said of their noise."""
    story, denoiser = Story(known), Incomplete(pairs=True)
    story.noisy[2, 0] = story.noisy[3, 1:] = np.nan
    usual, truths = denoiser.setup(known, None), np.full((N, D), np.nan)
    state = denoiser.start(usual)
    for t in range(N):
        parameters = parameters_of(denoiser, usual, story.noises[t])
        state = denoiser.update(parameters, state, story.noisy[t], None)
    for t, shown in ((3, [0, 2]), (0, [0, 1, 2]), (2, [1]), (3, [1])):
        before, after = truths[t].copy(), truths[t].copy()
        after[shown] = story.contexts[t, shown]
        truths[t] = after
        parameters = parameters_of(denoiser, usual, story.noises[t])
        state, context = denoiser.correct(parameters, state, story.noisy[t], before, after)
        right, bias = story.posterior(t, story.noisy, truths)
        same(context, right)
        same(Context(*denoiser.bias(usual, state)), bias)
    noise = story.noise(2).copy()
    noise[0], noise[:, 0], noise[0, 0] = 0.0, 0.0, 77.0
    other = denoiser.with_noise(usual, noise)
    same(
        denoiser.predict(other, state, story.noisy[2]),
        denoiser.predict(parameters_of(denoiser, usual, story.noises[2]), state, story.noisy[2]),
    )


def every_denoiser() -> list[Any]:
    return [row.denoiser for row in AGENTS.values() if isinstance(row.denoiser, TakesNoise)]


def alike(one: Any, other: Any, tolerance: float = 1e-9) -> None:
    """The same numbers, of shapes that may differ by axes of one."""
    for x, y in zip(one, other, strict=True):
        first, second = np.broadcast_arrays(x, y)
        np.testing.assert_allclose(first, second, rtol=tolerance, atol=tolerance)


def test_the_first_reading_is_denoised_as_if_all_had_its_noise() -> None:
    noise, reading = spd(np.random.default_rng(1), D), np.array([[2.0, -1.0, 0.5]])
    for denoiser in every_denoiser():
        if isinstance(denoiser, Fleet):
            continue  # learns what is usual from the told noise
        privilege = Privilege(np.array([0.3, -0.2, 0.1]))
        usual, other = (denoiser.setup(one, privilege) for one in (KNOWN, KNOWN._replace(noise_cov=noise)))
        parameters, state = denoiser.with_noise(usual, noise[None]), denoiser.start(usual)
        alike(*(denoiser.predict(x, state, reading) for x in (parameters, other)))
        if hasattr(denoiser, "predict_reading"):
            alike(*(denoiser.predict_reading(x, state) for x in (parameters, other)))
        if hasattr(denoiser, "bias") and not isinstance(denoiser, Adaptive):  # shares of heavy tails differ
            truth = reading - 0.4 if denoiser.sees_context else None
            states = [denoiser.update(x, state, reading, truth) for x in (parameters, other)]
            alike(*(denoiser.bias(x, after) for x, after in zip((usual, other), states, strict=True)))


def test_special_cases_agree_with_exact() -> None:
    """One component, one hypothesis, tails that are none: all are Exact."""
    law = Law(np.ones(1), KNOWN.context_mean[None], KNOWN.context_cov[None])
    known, exact = KNOWN._replace(mixture=law, sample=None), Exact()
    story = Story(known)
    plain: list[Any] = [Mixture(), Adaptive(sizes=1, steps=0, tails=0.0), Robust(nu=1000.0)]
    for denoiser in plain:
        tolerance = 2e-2 if isinstance(denoiser, Robust) else 1e-9
        parts: list[Any] = [denoiser, exact]
        usual = [part.setup(known, None) for part in parts]
        states = [part.start(x) for part, x in zip(parts, usual, strict=True)]
        for t in range(N):
            own = [parameters_of(part, x, story.noises[t]) for part, x in zip(parts, usual, strict=True)]
            args = [(x, state, story.noisy[t]) for x, state in zip(own, states, strict=True)]
            one, other = (part.predict(*arg) for part, arg in zip(parts, args, strict=True))
            alike(one, other, tolerance)
            states = [part.update(*arg, None) for part, arg in zip(parts, args, strict=True)]


def test_atoms_are_weighed_by_the_readings_noise() -> None:
    noise = spd(np.random.default_rng(2), D)
    reading, bias = np.array([2.0, -1.0, 0.5]), np.array([0.3, -0.2, 0.1])
    oracle, sampled = KnownBiasAtoms(), Empirical(bandwidth=0.0)
    parameters = oracle.with_noise(oracle.setup(KNOWN, Privilege(bias)), noise)
    for belief, total in (
        (oracle.predict(parameters, (), reading), noise),
        (_first(sampled, noise, reading - bias), noise + KNOWN.bias_cov),
    ):
        apart = reading - bias - SAMPLE
        logs = -0.5 * np.einsum("ni,ij,nj->n", apart, np.linalg.inv(total), apart)
        weights = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
        mean = weights @ SAMPLE
        same(belief, Context(mean, (weights[:, None] * (SAMPLE - mean)).T @ (SAMPLE - mean)), 1e-7)


def _first(denoiser: Any, noise: Array, reading: Array) -> Context:
    usual = denoiser.setup(KNOWN, None)
    belief: Context = denoiser.predict(denoiser.with_noise(usual, noise), denoiser.start(usual), reading)
    return belief


class Units:
    """What Fleet remembers of several units."""

    def __init__(self, denoiser: Fleet, known: Knowledge) -> None:
        self.denoiser, self.usual = denoiser, denoiser.setup(known, None)
        self.pool, fresh = denoiser.start(self.usual)
        self.own = [fresh] * 60

    def parameters(self, variance: float | None) -> Any:
        if variance is None:
            return self.usual
        return self.denoiser.with_noise(self.usual, np.array([[variance]]))

    def read(self, unit: int, reading: float, variance: float | None = None) -> None:
        state = Pooled(self.pool, self.own[unit])
        state = self.denoiser.update(self.parameters(variance), state, np.array([reading]), None)
        self.pool, self.own[unit] = state

    def reveal(self, unit: int, reading: float, truth: float, variance: float | None) -> None:
        state, known = Pooled(self.pool, self.own[unit]), (np.array([np.nan]), np.array([truth]))
        state, _ = self.denoiser.correct(self.parameters(variance), state, np.array([reading]), *known)
        self.pool, self.own[unit] = state


def fleet_knowledge(noise: float, within: float, person: float, device: float) -> Knowledge:
    """Everything told but the mean, or nothing but the noise where a number is NaN."""
    one = np.ones((1, 1))
    covs = (within + person) * one, noise * one, device * one
    return Knowledge(np.full(1, np.nan), *covs, np.zeros(1), one, person_cov=person * one)


def test_offsets_of_a_unit_are_those_of_the_joint_gaussian() -> None:
    """Fleet, told the variances: readings of any noise, and truths of some of them."""
    rng, noise, within, person, device = np.random.default_rng(3), 1.3, 2.0, 0.7, 1.9
    units = Units(Fleet(candidates=("both",)), fleet_knowledge(noise, within, person, device))
    for unit in range(1, 8):
        units.read(unit, rng.normal(5, 2))
    variances: list[float | None] = [0.2, None, 9.0, 2.0, None, 40.0]
    readings = rng.normal(7, 2, len(variances))
    for reading, variance in zip(readings, variances, strict=True):
        units.read(0, reading, variance)
    truths = {1: 6.1, 2: 7.7, 5: 3.9}
    for i, truth in truths.items():
        units.reveal(0, readings[i], truth, variances[i])
    last, own = 9.0, 0.4
    fleet, n = moments(units.usual, units.pool), len(variances)
    mean = float((fleet.mean + units.pool.origin)[0])
    spread = [noise if one is None else one for one in variances] + [own]
    cov = np.diag([person, device, *[within] * (n + 1), *spread])
    rows, data = list[Array](), list[float]()
    for i in range(n + 1):
        row = np.zeros((2, len(cov)))
        row[0, [0, 2 + i]] = row[1, [0, 1, 2 + i, 3 + n + i]] = 1
        rows.append(row[1])
        data.append((last if i == n else float(readings[i])) - mean)
        if i in truths:
            rows.append(row[0])
            data.append(truths[i] + float(fleet.shift[0]) - mean)
    right, covariance = given(np.zeros(len(cov)), cov, np.array(rows), np.array(data))
    belief = units.denoiser.predict(units.parameters(own), Pooled(units.pool, units.own[0]), np.array([last]))
    np.testing.assert_allclose(belief.mean[0, 0], mean + row[0] @ right, rtol=1e-10)
    np.testing.assert_allclose(belief.cov[0, 0, 0], row[0] @ covariance @ row[0], rtol=1e-10)


@pytest.mark.slow
def test_moments_of_the_fleet_allow_for_noise_that_is_not_as_told() -> None:
    """Half of the readings with nine times the noise: means over 40 fleets, within four standard errors."""
    nan, within, between, noise = float("nan"), 2.0, 1.5, 1.0
    learnt = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        units = Units(Fleet(), fleet_knowledge(noise, nan, nan, nan))
        for unit in range(40):
            offset = rng.normal(0, between**0.5)
            for i in range(12):
                own = 9.0 if i % 2 else None
                spread = within + (noise if own is None else own)
                units.read(unit, 5 + offset + rng.normal(0, spread**0.5), own)
        fleet = moments(units.usual, units.pool)
        learnt.append([fleet.within[0], fleet.between[0]])
    error = np.std(learnt, axis=0) / len(learnt) ** 0.5
    shrunk = np.array([within + noise, (between * 40 + 0.2 * (within + noise) * 3) / 43])
    assert (np.abs(np.mean(learnt, axis=0) - shrunk) < 4 * error + 0.02).all()


def test_a_reading_of_endless_noise_says_nothing() -> None:
    rng, nan = np.random.default_rng(5), float("nan")
    one, other = (Units(Fleet(), fleet_knowledge(1.0, nan, nan, nan)) for _ in range(2))
    for i in range(80):
        reading = rng.normal(3, 2)
        for units in (one, other):
            units.read(i % 8, reading)
    other.read(2, 1e5, 1e14)
    first, second = (
        units.denoiser.predict(units.usual, Pooled(units.pool, units.own[2]), np.array([4.0]))
        for units in (one, other)
    )
    alike(first, second)


def played(agent: Agent, noises: Any, mask: Array | None = None) -> list[Any]:
    """Beliefs, arms and rewards learnt in some rounds, with a noise covariance for each."""
    truth, story = make_world()
    features = truth.features
    setup, memory = begin(agent, truth)
    results = list[Any]()
    for t, r in enumerate(story):
        observation = Observation(r.noisy, mask, noise=noises[t])
        decision = rounds.decide(agent, setup, memory, features, observation, r.normals)
        memory = rounds.observe(agent, setup, memory, observation)
        memory, after = rounds.reward(agent, setup, memory, decision, r.reward)
        if agent.sees_context:
            memory, _ = rounds.reveal(agent, setup, memory, after, r.context)
        results.append([np.asarray(part) for part in decision.context])
    return results


NOISY = [row for row in AGENTS.values() if row.can.take_noise is not None and row.takes_noise]


def test_rounds_learn_from_a_reading_by_its_own_noise() -> None:
    """When it is observed, with its pair, and when its truth comes late."""
    truth, story = make_world()
    rng = np.random.default_rng(8)
    for name in ("unfog", "unfog-delayed", "late"):
        agent = replace(AGENTS[name], clip_sd=None)
        denoiser: Any = agent.denoiser
        setup, memory = begin(agent, truth)
        state = memory.denoiser
        for r in story:
            noise = np.stack([spd(rng, D, 0.05, 8.0) for _ in range(TRIALS)])
            observation, parameters = (
                Observation(r.noisy, noise=noise),
                denoiser.with_noise(setup.denoiser, noise),
            )
            decision = rounds.decide(agent, setup, memory, truth.features, observation, r.normals)
            memory = rounds.observe(agent, setup, memory, observation)
            if not agent.awaits_context:
                state = denoiser.update(parameters, state, r.noisy, None)
            memory, decision = rounds.reward(agent, setup, memory, decision, r.reward)
            if agent.sees_context:
                memory, _ = rounds.reveal(agent, setup, memory, decision, r.context)
            if agent.awaits_context:
                state = denoiser.update(parameters, state, r.noisy, r.context)
            elif agent.sees_context:
                state, _ = denoiser.correct(parameters, state, r.noisy, r.noisy * np.nan, r.context)
            alike(denoiser.bias(setup.denoiser, memory.denoiser), denoiser.bias(setup.denoiser, state))


def test_the_told_noise_changes_nothing() -> None:
    mask = np.ones((TRIALS, D))
    mask[1, 0] = mask[2, 1:] = 0.0
    usual = [np.broadcast_to(KNOWN.noise_cov, (TRIALS, D, D))] * ROUNDS
    for agent in NOISY:
        for lost in (None, mask):
            for pair in zip(played(agent, usual, lost), played(agent, [None] * ROUNDS, lost), strict=True):
                alike(*pair)


def test_the_noise_of_what_was_lost_is_ignored() -> None:
    rng, mask = np.random.default_rng(6), np.ones((TRIALS, D))
    mask[:, 1] = 0.0
    noises = [np.stack([spd(rng, D) for _ in range(TRIALS)]) for _ in range(ROUNDS)]
    others = [noise.copy() for noise in noises]
    for other in others:
        other[:, 1, :] = other[:, :, 1] = 0.0
        other[:, 1, 1] = 55.0
    for agent in NOISY:
        for pair in zip(played(agent, noises, mask), played(agent, others, mask), strict=True):
            alike(*pair)


@pytest.mark.slow
def test_both_libraries_believe_the_same() -> None:
    rng = np.random.default_rng(7)
    noises = [np.stack([spd(rng, D) for _ in range(TRIALS)]) for _ in range(2)]
    noisy = rng.normal(1.0, 2.0, (2, TRIALS, D))
    privilege = Privilege(np.array([0.3, -0.2, 0.1]))
    denoisers: list[Any] = [
        Exact(),
        Incomplete(pairs=True),
        Drift(),
        Robust(),
        Fleet(),
    ]
    for denoiser in denoisers:
        beliefs = []
        for xp in (np, jnp):
            move: Any = xp.asarray
            parameters = map_arrays(move, denoiser.setup(KNOWN._replace(sample=None), privilege))
            state = map_arrays(move, denoiser.start(parameters))
            for reading, noise in zip(noisy, noises, strict=True):
                own = denoiser.with_noise(parameters, move(noise))
                belief = denoiser.predict(own, state, move(reading))
                state = denoiser.update(own, state, move(reading), move(0.5 * reading))
            beliefs.append(belief)
        alike(beliefs[0], beliefs[1])


def test_who_cannot_use_it_refuses_it() -> None:
    truth, story = make_world()
    names = {name for name, row in AGENTS.items() if not row.takes_noise}
    assert names == {"coupled", "unknown-noise"}
    for name in names:
        agent = AGENTS[name]
        observation = Observation(story[0].noisy, noise=np.eye(D))
        why = f"^noise: given for one reading; allowed: none: to '{name}' all readings are alike$"
        with pytest.raises(InputError, match=why):
            rounds.decide(agent, *begin(agent, truth), truth.features, observation, story[0].normals)
