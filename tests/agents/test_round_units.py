"""Units with biases of their own: each must be believed as if it had been played alone."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.agents.world import KNOWN, D, K, M, leaves, same_bits
from tests.problems import inverse
from unfog.agents import round as rounds
from unfog.agents.agent import Agent
from unfog.agents.base import Denoiser, Privilege
from unfog.agents.catalogue import AGENTS, Catalogue
from unfog.agents.choose import Thompson
from unfog.agents.denoise import (
    Drift,
    Exact,
    Identity,
    Incomplete,
    KnownBias,
    PlugIn,
    PriorOnly,
    Robust,
    UnknownNoise,
)
from unfog.agents.learn import Conjugate, Revisable
from unfog.agents.round import Decision, Memory, Observation, Setup, Several
from unfog.channel.knowledge import Knowledge
from unfog.features.quadratic import quadratic
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.maths.trees import map_arrays

UNITS, TRIALS, ROUNDS = 3, 4, 15
BIAS = np.array([0.4, -0.3, 0.9])
DENOISERS: list[Denoiser] = [
    Identity(),
    KnownBias(),
    PriorOnly(),
    *(
        make(pairs=pairs)
        for make in (PlugIn, Exact, Drift, Incomplete, Robust, UnknownNoise)
        for pairs in (False, True)
    ),
]
AGENTS_OF = {
    f"{denoiser!r} {learner.name}": Agent("mine", denoiser, learner, Thompson())
    for denoiser in DENOISERS
    for learner in (Conjugate(), Revisable())
    if isinstance(learner, Conjugate) or denoiser.name in ("incomplete", "unknown_noise")
}
EVERY_DENOISER = pytest.mark.parametrize("agent", AGENTS_OF.values(), ids=list(AGENTS_OF))


class Story(NamedTuple):
    """Rounds of several units: (rounds, trials, ...), or those of one trial: (rounds, ...)."""

    noisy: Array
    contexts: Array
    rewards: Array
    normals: Array
    unit: Any  # (rounds, trials), or (rounds,) where a round is of the same unit in all trials
    actions: Array  # (trials, K, d)

    def of_trial(self, i: int) -> "Story":
        unit = self.unit[:, i] if self.unit.ndim > 1 else self.unit
        noisy, contexts, rewards, normals = (part[:, i] for part in self[:4])
        return Story(noisy, contexts, rewards, normals, unit, self.actions[i])


def story(shared: bool, seed: int = 5) -> Story:
    """Which unit a round is of differs between trials, or is the same for all (`shared`)."""
    rng = np.random.default_rng(seed)
    unit = rng.integers(0, UNITS, (ROUNDS, 1 if shared else TRIALS))
    biases = rng.normal(0, 2, (TRIALS, UNITS, D))
    contexts = rng.multivariate_normal(KNOWN.context_mean, KNOWN.context_cov, (ROUNDS, TRIALS))
    noise = rng.multivariate_normal(np.zeros(D), KNOWN.noise_cov, (ROUNDS, TRIALS))
    noisy = contexts + noise + biases[np.arange(TRIALS), unit]
    rewards, normals = rng.normal(1, 2, (ROUNDS, TRIALS)), rng.standard_normal((ROUNDS, TRIALS, M))
    return Story(
        noisy, contexts, rewards, normals, unit[:, 0] if shared else unit, rng.normal(size=(TRIALS, K, D))
    )


def started(agent: Agent, several: Several | None) -> tuple[Setup, Memory]:
    return rounds.start(agent, KNOWN, Privilege(BIAS) if agent.can.see_bias else None, several=several)


def together(agent: Agent, told: Story) -> tuple[Setup, Memory, list[Decision]]:
    """All units in turn; contexts come three rounds late, the last at the end, to those that see them."""
    setup, memory = started(agent, Several(UNITS, told.rewards.shape[1:]))
    features, decisions = quadratic(told.actions), list[Decision]()

    def reveal(t: int) -> Memory:
        return rounds.reveal(agent, setup, memory, decisions[t], told.contexts[t])[0]

    for t in range(ROUNDS):
        observation = Observation(told.noisy[t], unit=told.unit[t])
        decision = rounds.decide(agent, setup, memory, features, observation, told.normals[t])
        memory = rounds.observe(agent, setup, memory, observation)
        memory, decision = rounds.reward(agent, setup, memory, decision, told.rewards[t])
        decisions.append(decision)
        if agent.sees_context and t >= 3:
            memory = reveal(t - 3)
    if agent.sees_context:
        for t in range(ROUNDS - 3, ROUNDS):
            memory = reveal(t)
    return setup, memory, decisions


def alone(agent: Agent, told: Story, unit: int) -> Any:
    """What the denoiser remembers of one unit of one trial, with no other unit in the world."""
    denoiser: Any = agent.denoiser
    parameters = denoiser.setup(KNOWN, Privilege(BIAS))
    state = denoiser.start(parameters)
    own = [t for t in range(ROUNDS) if told.unit[t] == unit]
    late = [(t, "c") for t in own] if agent.sees_context else []
    seen = [(t, "n") for t in own] if not agent.awaits_context else []
    for t, what in sorted(seen + late, key=lambda event: event[0] + 3.5 * (event[1] == "c")):
        noisy, context = told.noisy[t], told.contexts[t]
        if what == "n":
            state = denoiser.update(parameters, state, noisy, None)
        elif agent.awaits_context:
            state = denoiser.update(parameters, state, noisy, context)
        else:
            state, _ = denoiser.correct(parameters, state, noisy, np.full(D, np.nan), context)
    return state


@EVERY_DENOISER
def test_units_share_theta_and_nothing_else(agent: Agent) -> None:
    """Where trials are of other units in a round, and where all are of the same."""
    for shared in (False, True):
        told = story(shared)
        found = together(agent, told)
        check_that_every_unit_is_believed_as_if_it_were_alone(agent, told, *found[:2])
        check_that_theta_is_shared_by_all_units(agent, told, *found)
    check_trials_alone(agent)


def check_that_every_unit_is_believed_as_if_it_were_alone(
    agent: Agent, told: Story, setup: Setup, memory: Memory
) -> None:
    asked = np.random.default_rng(1).normal(1, 2, D)
    for unit in range(UNITS):
        number = np.full(TRIALS, unit)
        channel = rounds.state_of(memory.denoiser, number, told.noisy[0])
        found = agent.denoiser.predict(setup.denoiser, channel, np.broadcast_to(asked, (TRIALS, D)))
        for i in range(TRIALS):
            state = alone(agent, told.of_trial(i), unit)
            for one, other in zip(leaves(channel), leaves(state), strict=True):
                np.testing.assert_allclose(one[i], other, rtol=1e-11, atol=1e-11)
            right = agent.denoiser.predict(setup.denoiser, state, asked)
            np.testing.assert_allclose(found.mean[i], right.mean, rtol=1e-9, atol=1e-10)
            covs = np.broadcast_to(found.cov, (TRIALS, D, D))
            np.testing.assert_allclose(covs[i], right.cov, rtol=1e-9, atol=1e-10)


def check_that_theta_is_shared_by_all_units(
    agent: Agent, told: Story, setup: Setup, memory: Memory, decisions: list[Decision]
) -> None:
    """Every reward of every unit, in precision form, with phi itself where contexts were shown."""
    found = agent.learner.belief(setup.learner, memory.learner)
    assert isinstance(found, gaussian.Gaussian)
    features = quadratic(told.actions)
    rows, variances = [], []
    for t, decision in enumerate(decisions):
        design = features.at(told.contexts[t]) if agent.sees_context else features.design(decision.context)
        rows.append(design.row(decision.arm))
        counts = agent.learner.name == "revisable" and not agent.sees_context
        adds = decision.evidence.context_variance() if counts else np.zeros(TRIALS)
        variances.append(np.asarray(KNOWN.reward_var, np.float64) + adds)
    for i in range(TRIALS):
        precision = inverse(KNOWN.prior_cov)
        natural_mean = precision @ KNOWN.prior_mean
        for row, variance, reward in zip(rows, variances, told.rewards, strict=True):
            precision = precision + np.outer(row[i], row[i]) / variance[i]
            natural_mean = natural_mean + row[i] * reward[i] / variance[i]
        np.testing.assert_allclose(
            found.mean[i], np.linalg.solve(precision, natural_mean), rtol=1e-8, atol=1e-9
        )
        np.testing.assert_allclose(gaussian.covariance(found)[i], inverse(precision), rtol=1e-8, atol=1e-10)


def check_trials_alone(agent: Agent) -> None:
    told = story(False)
    _, batch, _ = together(agent, told)
    _, memory, _ = together(agent, told.of_trial(2))
    for one, other in zip(leaves(memory.denoiser), leaves(batch.denoiser), strict=True):
        np.testing.assert_allclose(one, other[:, 2], rtol=1e-11, atol=1e-11)
    for one, other in zip(leaves(memory.learner), leaves(batch.learner), strict=True):
        np.testing.assert_allclose(one, other[2], rtol=1e-9, atol=1e-11)


def test_one_unit_is_no_axis() -> None:
    """With one unit of several the numbers are those of an agent that knows of none."""
    told = story(False)
    for agent in AGENTS_OF.values():
        states = []
        for several, unit in ((None, None), (Several(1, (TRIALS,)), np.zeros(TRIALS, int))):
            setup, memory = started(agent, several)
            for t in range(4):
                observation = Observation(told.noisy[t], unit=unit)
                decision = rounds.decide(
                    agent, setup, memory, quadratic(told.actions), observation, told.normals[t]
                )
                memory = rounds.observe(agent, setup, memory, observation)
                memory, decision = rounds.reward(agent, setup, memory, decision, told.rewards[t])
                if agent.sees_context:
                    memory, _ = rounds.reveal(agent, setup, memory, decision, told.contexts[t])
            states.append(memory)
        one, several_ = states
        for x, y in zip(leaves(one.denoiser), leaves(several_.denoiser), strict=True):
            np.testing.assert_allclose(np.broadcast_to(x, y[0].shape), y[0], rtol=1e-12, atol=1e-13)
        for x, y in zip(leaves(one.learner), leaves(several_.learner), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-11)


def test_a_state_is_taken_out_and_put_back(rng: np.random.Generator) -> None:
    state = Exact().start(Exact().setup(KNOWN, None)), (rng.normal(size=(D, D)),)
    for batch in ((), (4,), (2, 3)):
        repeated = rounds.repeat_state(state, Several(UNITS, batch))
        assert type(repeated[0]) is type(state[0])
        noisy, unit = np.zeros((*batch, D)), rng.integers(0, UNITS, batch)
        for leaf, first in zip(leaves(repeated), leaves(state), strict=True):
            assert leaf.shape == (UNITS, *batch, *first.shape)
            assert (leaf == first).all()
        new = map_arrays(
            lambda x: np.asarray(rng.normal(size=x.shape)), rounds.state_of(repeated, unit, noisy)
        )
        put = rounds.put_state(repeated, unit, noisy, new)
        assert same_bits(rounds.state_of(put, unit, noisy), new)
        others = (unit + 1) % UNITS
        assert same_bits(rounds.state_of(put, others, noisy), rounds.state_of(repeated, others, noisy))
        assert rounds.state_of(state, None, noisy) is state
        assert rounds.put_state(state, None, noisy, new) is new


@pytest.mark.slow
def test_both_engines_keep_units_apart() -> None:
    agent, told = AGENTS["unfog"], story(False)

    def believed(known: Knowledge, noisy: Any, unit: Any) -> Any:
        setup, memory = rounds.start(agent, known, several=Several(UNITS, (TRIALS,)))
        for t in range(3):
            memory = rounds.observe(agent, setup, memory, Observation(noisy[t], unit=unit[t]))
        return memory.denoiser

    right = believed(KNOWN, told.noisy, told.unit)
    found = jax.jit(believed)(*jax.tree.map(jnp.asarray, (KNOWN, told.noisy, told.unit)))
    for ours, theirs in zip(jax.tree.leaves(found), leaves(right), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


LOOKING_BACK = ["alg1-exact-coupled", "alg1-exact-smoothing", "alg1-exact-joint", "samplinucb", "clbbf"]


def test_learners_that_look_back_have_one_unit_to_look_back_on() -> None:
    for name in LOOKING_BACK:
        check_learners_that_look_back_have_one_unit_to_look_back_on(name)


def check_learners_that_look_back_have_one_unit_to_look_back_on(name: str) -> None:
    agent = Catalogue()[name]
    with pytest.raises(ValueError, match=f"^{name}: its learner looks back on past rounds as those of one"):
        started(agent, Several(2))
    started(agent, None)
    started(replace(agent, learner=Conjugate(), chooser=Thompson(), binary_learner=None), Several(2))


def test_units_have_other_biases() -> None:
    """The story can tell: what one unit is believed to be, others are not."""
    told = story(False)
    setup, memory, _ = together(AGENTS["unfog"], told)
    found = [
        AGENTS["unfog"]
        .denoiser.predict(
            setup.denoiser,
            rounds.state_of(memory.denoiser, np.full(TRIALS, unit), told.noisy[0]),
            told.noisy[0],
        )
        .mean
        for unit in range(UNITS)
    ]
    assert np.abs(found[0] - found[1]).min(-1).max() > 0.1
