"""The round: one contract for every row of the catalogue, and whatever may come in any order."""

from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.agents.denoise.stories import Joint
from tests.agents.world import (
    BOTH_KINDS,
    EVERY_ROW,
    KNOWN,
    PROBLEM,
    ROUNDS,
    TRIALS,
    D,
    K,
    M,
    Round,
    begin,
    belief,
    leaves,
    make_world,
    one_trial,
    play,
    same_bits,
    step,
)
from tests.problems import feature_moments, given, inverse, quadratic_phi
from unfog.agents import round as rounds
from unfog.agents.agent import Agent
from unfog.agents.base import Pooled, Privilege
from unfog.agents.catalogue import AGENTS, Catalogue
from unfog.agents.denoise import (
    Drift,
    Exact,
    Identity,
    Incomplete,
    KnownBias,
    KnownBiasAtoms,
    PlugIn,
    PriorOnly,
    Robust,
    UnknownNoise,
    bias,
)
from unfog.agents.denoise.bias import Tally
from unfog.agents.learn import Conjugate, Hetero, Revisable, revisable
from unfog.agents.round import Decision, Memory, Observation, Setup
from unfog.features import Context
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.worlds.problem import Truth

NAN = np.full((TRIALS, D), np.nan)
STATELESS = Identity(), PriorOnly(), KnownBias(), KnownBiasAtoms()
LEARN_THE_BIAS = PlugIn, Exact, Incomplete, UnknownNoise, Drift, Robust
PAIRS_ALONE = PlugIn(pairs=True), Exact(pairs=True)  # they learn from a measurement and its true context

# What follows from a formula is asked of the rows whose formula is known here: a new row may have another.
BY_HAND = [row for row in AGENTS.values() if row.learner in (Conjugate(), Hetero(), Revisable())]
PAPERS = ["alg1", "alg2", "naive", "oracle", "kk", "alg1-exact", "alg2-exact"]
OURS = ["unfog", "unfog-delayed", "unfog-oracle", "gaps", "late", "unknown-noise", "drift", "robust"]
ORDER_FREE = [*PAPERS, *OURS]


class Played(NamedTuple):
    """Rounds that one row has played, with all that it decided and remembered."""

    truth: Truth
    rounds: list[Round]
    decisions: list[Decision]
    memories: list[Memory]  # from before the first round to after the last
    copies: list[list[Array]]  # of what these held when they were made


def watch(agent: Agent) -> Played:
    truth, played = make_world()
    setup, memory = begin(agent, truth)
    found = Played(truth, played, [], [memory], [[leaf.copy() for leaf in leaves(memory)]])
    for r in played:
        decision, memory = step(agent, setup, memory, truth, r)
        found.decisions.append(decision)
        found.memories.append(memory)
        found.copies.append([leaf.copy() for leaf in leaves(memory)])
    return found


@EVERY_ROW
def test_a_row_keeps_the_contract(agent: Agent) -> None:
    """Every rule below, each with a function of its own; the rounds are played once."""
    played = watch(agent)
    check_shapes_types_and_range(agent, played)
    check_memories(agent, played)
    check_what_the_denoiser_remembers(agent, played)
    check_rows(played)
    check_trials_alone(agent, played)
    check_privilege(agent)
    check_who_is_shown_contexts(agent, played)
    check_observing(agent, played)
    check_decisions_with_probabilities(agent, played)


def check_shapes_types_and_range(agent: Agent, played: Played) -> None:
    batch = (TRIALS,) if agent.can.hedge is None else (TRIALS, len(agent.can.hedge.candidates))
    for decision in played.decisions:
        assert decision.arm.shape == (TRIALS,)
        assert np.issubdtype(decision.arm.dtype, np.integer)
        assert ((decision.arm >= 0) & (decision.arm < K)).all()
        assert decision.context.mean.shape == (TRIALS, D)
        assert decision.context.cov.shape in {(D, D), (TRIALS, D, D)}
        assert decision.evidence.row().shape == (*batch, M)
        assert all(leaf.dtype == np.float64 for leaf in (*decision.context, decision.evidence.row()))
    for memory in played.memories[1:]:
        assert belief(agent, memory).mean.shape == (*batch, M)
        *rows, columns = belief(agent, memory).root.shape
        assert tuple(rows) == (*batch, M)
        assert columns >= M  # a mixture has more
        kept = leaves(memory[:2])
        assert all(leaf.dtype == np.float64 and np.isfinite(leaf).all() for leaf in kept)
        assert all(leaf.dtype == np.int64 and not leaf.any() for leaf in leaves(memory.surprises))
    shapes = [[leaf.shape for leaf in leaves(memory)] for memory in played.memories[1:]]
    assert all(shape == shapes[0] for shape in shapes)


def check_memories(agent: Agent, played: Played) -> None:
    """Every round changes what is believed, and leaves the memories of before alone."""
    for memory, copies in zip(played.memories, played.copies, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(leaves(memory), copies, strict=True))
    if agent.can.estimate_scales is not None:
        return  # believes nothing before the first estimate
    for old, new in pairwise(belief(agent, memory) for memory in played.memories):
        assert (np.abs(new.mean - old.mean).max(-1) > 1e-6).all()
        assert (np.abs(new.root - old.root).max((-2, -1)) > 1e-6).all()


def check_what_the_denoiser_remembers(agent: Agent, played: Played) -> None:
    """Something where there is a bias to learn, and nothing where there is none."""
    remembers = len(leaves(played.memories[0].denoiser)) > 0
    if agent.denoiser in STATELESS or type(agent.denoiser) in LEARN_THE_BIAS:
        assert remembers == (agent.denoiser not in STATELESS)
    if isinstance(played.memories[0].denoiser, Tally):
        assert [float(memory.denoiser.seen) for memory in played.memories] == list(range(ROUNDS + 1))


def check_rows(played: Played) -> None:
    """The row that is learnt from is that of the arm that was taken, at what was believed of the context."""
    for decision in played.decisions:
        features, context = played.truth.features, decision.evidence.context
        if context is not None and context.mean.ndim > 2:  # of several candidates
            features = features.over_rounds()
        again = features.design(context or decision.context).row(decision.evidence.arm)
        assert np.array_equal(decision.evidence.row(), again)


def check_trials_alone(agent: Agent, played: Played) -> None:
    for i in (0, TRIALS - 1):
        alone, remembered = play(agent, *one_trial(played.truth, played.rounds, i))
        for together, single in zip(played.decisions, alone, strict=True):
            assert together.arm[i] == single.arm
            row = together.evidence.row()[i]
            np.testing.assert_allclose(row, single.evidence.row(), rtol=1e-12, atol=1e-13)
        found, right = (belief(agent, memory).mean for memory in (played.memories[-1], remembered[-1]))
        np.testing.assert_allclose(found[i], right, rtol=1e-11, atol=1e-12)


def check_privilege(agent: Agent) -> None:
    """It is for the privileged alone, and they cannot do without."""
    wrong = None if agent.can.see_bias else Privilege(make_world()[0].bias)
    with pytest.raises(ValueError, match=f"^{agent.name}: privilege must be given to privileged agents"):
        rounds.start(agent, KNOWN, wrong)


def check_who_is_shown_contexts(agent: Agent, played: Played) -> None:
    """Who is shown the context makes something of it; to all others it cannot be shown."""
    setup, memory = begin(agent, played.truth)
    noisy, context = played.rounds[0].noisy, played.rounds[0].context

    def remember(revealed: Array | None) -> list[Array]:
        state = memory.denoiser if agent.can.pool is None else Pooled(memory.pool, memory.denoiser)
        return leaves(agent.denoiser.update(setup.denoiser, state, noisy, revealed))

    if agent.sees_context:
        pairs = zip(remember(context), remember(context + 1), strict=True)
        assert not all(np.array_equal(one, other) for one, other in pairs)
    else:
        with pytest.raises(ValueError, match=f"^{agent.name}: its parts cannot take in a true context$"):
            rounds.reveal(agent, setup, memory, played.decisions[0], context)
    if agent.denoiser in PAIRS_ALONE:
        with pytest.raises(TypeError):
            remember(None)
    if not agent.awaits_context:
        for a, b in zip(remember(None), remember(NAN), strict=True):
            assert np.array_equal(a + np.zeros_like(b), b + np.zeros_like(a))


def check_observing(agent: Agent, played: Played) -> None:
    """It is for the channel alone."""
    setup, memory = begin(agent, played.truth)
    for r in played.rounds[:3]:
        before, memory = memory, rounds.observe(agent, setup, memory, Observation(r.noisy))
        assert memory.learner is before.learner
        learns = len(leaves(memory.denoiser)) > 0 and not agent.awaits_context
        assert same_bits(memory.denoiser, before.denoiser) != learns


def check_decisions_with_probabilities(agent: Agent, played: Played) -> None:
    """They are decisions to the bit, and what is observed of one is what is observed of its offer."""
    truth = played.truth
    setup, memory = begin(agent, truth)
    width = agent.chooser.normals(KNOWN)
    for number, r in enumerate(played.rounds[:3]):
        observation = Observation(r.noisy, round=np.asarray(number))
        normals = np.tile(r.normals, 8)[:, :width]
        draws = np.random.default_rng(number).standard_normal((5, TRIALS, width))
        told = agent, setup, memory, truth.features, observation
        considered = rounds.consider(*told)
        arm, chances = agent.chooser.choose_with_probabilities(considered.view, normals, draws)
        made = rounds.make_decision(agent, setup, truth.features, considered, arm)
        right = rounds.decide(*told, normals)
        assert same_bits(made[:2], right[:2])
        np.testing.assert_array_equal(chances, rounds.probabilities(*told, draws))
        seen = rounds.observe_reading(agent, setup, memory, made)
        assert same_bits(seen, rounds.observe(agent, setup, memory, observation))
        memory, decision = rounds.reward(agent, setup, seen, made, r.reward)
        if agent.sees_context:
            memory, _ = rounds.reveal(agent, setup, memory, decision, r.context)


def learnt_by_hand(
    agent: Agent, row: Array, spread: Array | None, reward: Array, prior: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Mean and covariance of theta after one reward, in precision form, with Cov(phi) in full.

    Where Cov(phi) is not None it adds to the reward's variance, for learners that count it.
    """
    mean, cov = prior
    variance = float(np.asarray(KNOWN.reward_var))
    if spread is not None and agent.learner.name != "conjugate":
        variance = variance + mean @ spread @ mean + np.trace(spread @ cov)
    precision = inverse(cov) + np.outer(row, row) / variance
    natural_mean = inverse(cov) @ mean + row * reward / variance
    return inverse(precision) @ natural_mean, inverse(precision)


def test_what_is_learnt_from_is_phi_where_the_context_is_revealed() -> None:
    truth, played = make_world()
    first = played[0]
    for agent in BY_HAND:
        decision, after = step(agent, *begin(agent, truth), truth, first)
        found = belief(agent, after)
        for i in range(TRIALS):
            action = truth.features.table[i, decision.arm[i], D : 2 * D]  # type: ignore[attr-defined]
            covs = np.broadcast_to(decision.context.cov, (TRIALS, D, D))
            context = Context(decision.context.mean[i], covs[i])
            rows, spreads = feature_moments(quadratic_phi, action[None], context, order=3)
            x = quadratic_phi(action, first.context[i]) if agent.sees_context else rows[0]
            spread = None if agent.sees_context else spreads[0]
            prior = KNOWN.prior_mean, KNOWN.prior_cov
            mean, cov = learnt_by_hand(agent, x, spread, first.reward[i], prior)
            np.testing.assert_allclose(found.mean[i], mean, rtol=1e-9, atol=1e-11, err_msg=agent.name)
            covs = gaussian.covariance(found)
            np.testing.assert_allclose(covs[i], cov, rtol=1e-8, atol=1e-11, err_msg=agent.name)


def test_play_is_decide_observe_and_reward() -> None:
    truth, played = make_world()
    for agent in AGENTS.values():
        setup, memory = begin(agent, truth)
        asked: list[Any] = []

        def pay(arm: Any, asked: list[Any] = asked) -> Array:
            asked.append(arm)
            return played[0].reward

        told = agent, setup, memory, truth.features, Observation(played[0].noisy), played[0].normals
        after, decision = rounds.play(*told, pay)
        again = rounds.decide(*told)
        right = rounds.observe(agent, setup, memory, Observation(played[0].noisy))
        right, _ = rounds.reward(agent, setup, right, again, played[0].reward)
        assert same_bits(after, right)
        np.testing.assert_array_equal(asked, [again.arm])
        np.testing.assert_array_equal(decision.reward, played[0].reward)


# Rewards and true contexts, in any order.


def in_order(agent: Agent, order: str, world: tuple[Truth, list[Round]]) -> tuple[list[Decision], Memory]:
    """All rounds, each with its reward and its true context in this order: "rc" or "cr"."""
    truth, played = world
    setup, memory = begin(agent, truth)
    binary, decisions = agent.learner.rewards == "bernoulli", list[Decision]()
    for r in played:
        if agent.can.sample is not None:
            width = agent.can.sample.normals(KNOWN, len(decisions))
            drawn = np.random.default_rng(len(decisions)).standard_normal((TRIALS, width))
            memory = rounds.advance_chain(agent, setup, memory, drawn)
        observation, paid = Observation(r.noisy), (r.reward > 1).astype(float) if binary else r.reward
        decision = rounds.decide(agent, setup, memory, truth.features, observation, r.normals)
        memory = rounds.observe(agent, setup, memory, observation)
        for event in order:
            if event == "r":
                memory, decision = rounds.reward(agent, setup, memory, decision, paid)
            else:
                memory, decision = rounds.reveal(agent, setup, memory, decision, r.context)
        decisions.append(decision)
    return decisions, memory


SEEING = {name: agent for name, agent in BOTH_KINDS.items() if agent.sees_context}


@pytest.mark.parametrize("agent", SEEING.values(), ids=list(SEEING))
def test_a_reward_and_its_context_come_in_either_order(agent: Agent) -> None:
    """Where they come together, the context is taken in first."""
    world = make_world()
    (made, after), (again, other) = (in_order(agent, order, world) for order in ("rc", "cr"))
    assert not same_bits(after.learner, begin(agent, world[0])[1].learner)
    for first, second in zip(made, again, strict=True):
        np.testing.assert_array_equal(first.arm, second.arm)
        np.testing.assert_array_equal(first.evidence.row(), second.evidence.row())
    if agent.awaits_context:
        assert same_bits(after, other)
    for one, two in zip(leaves(squared(after)), leaves(squared(other)), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-10)
    check_that_play_takes_a_context_in_first(agent, *world)


def check_that_play_takes_a_context_in_first(agent: Agent, truth: Truth, played: list[Round]) -> None:
    r, (setup, memory) = played[0], begin(agent, truth)
    paid = (r.reward > 1).astype(float) if agent.learner.rewards == "bernoulli" else r.reward
    told = agent, setup, memory, truth.features, Observation(r.noisy), r.normals
    after, decision = rounds.play(*told, lambda arm: paid, r.context)
    right = rounds.observe(agent, setup, memory, Observation(r.noisy))
    right, known = rounds.reveal(agent, setup, right, rounds.decide(*told), r.context)
    right, _ = rounds.reward(agent, setup, right, known, paid)
    assert same_bits(after, right)
    np.testing.assert_array_equal(decision.known, r.context)
    assert not same_bits(after, rounds.play(*told, lambda arm: paid)[0])


def squared(memory: Memory) -> Memory:
    """With the covariance where a root of it is kept, of which there are many."""
    if not isinstance(memory.learner, revisable.State):
        return memory
    root = memory.learner.root
    return memory._replace(learner=memory.learner._replace(root=root @ root.mT))


def test_the_rows_that_see_contexts_are_those_of_setting_2() -> None:
    seeing = {name: agent.awaits_context for name, agent in AGENTS.items() if agent.sees_context}
    at_once, late = ["alg2", "alg2-exact", "unfog-delayed"], ["late", "unknown-noise"]
    known = {name: awaits for name, awaits in seeing.items() if name in ORDER_FREE}
    assert known == dict.fromkeys(at_once, True) | dict.fromkeys(late, False)


def test_who_awaits_the_context_learns_nothing_before() -> None:
    for name in ["alg2", "alg2-exact", "unfog-delayed"]:
        check_who_awaits_the_context_learns_nothing_before(name)


def check_who_awaits_the_context_learns_nothing_before(name: str) -> None:
    truth, played = make_world()
    agent = AGENTS[name]
    setup, memory = begin(agent, truth)
    observation = Observation(played[0].noisy)
    decision = rounds.decide(agent, setup, memory, truth.features, observation, played[0].normals)
    assert rounds.observe(agent, setup, memory, observation)[:2] == memory[:2]
    after, kept = rounds.reward(agent, setup, memory, decision, played[0].reward)
    assert after is memory
    assert kept.reward is played[0].reward
    channel, known = rounds.reveal(agent, setup, memory, decision, played[0].context)
    assert channel.learner is memory.learner
    assert not same_bits(channel.denoiser, memory.denoiser)
    np.testing.assert_array_equal(known.known, played[0].context)


def shuffled(agent: Agent, seed: int, hidden: set[int]) -> tuple[list[Decision], Setup, Memory]:
    """All decisions first; then rewards, and contexts but for those of some rounds, in any order."""
    truth, played = make_world()
    setup, memory = begin(agent, truth)
    decisions = []
    for r in played:
        decisions.append(rounds.decide(agent, setup, memory, truth.features, Observation(r.noisy), r.normals))
        memory = rounds.observe(agent, setup, memory, Observation(r.noisy))
    events = [("r", t) for t in range(ROUNDS)]
    if agent.sees_context:
        events += [("c", t) for t in range(ROUNDS) if t not in hidden]
    for what, t in [events[i] for i in np.random.default_rng(seed).permutation(len(events))]:
        told = agent, setup, memory, decisions[t]
        if what == "r":
            memory, decisions[t] = rounds.reward(*told, played[t].reward)
        else:
            memory, decisions[t] = rounds.reveal(*told, played[t].context)
    return decisions, setup, memory


def test_all_of_a_run_may_come_in_any_order() -> None:
    """Learners that add up what rounds say: the order is rounding."""
    for name in ORDER_FREE:
        check_all_of_a_run_may_come_in_any_order(name)


def check_all_of_a_run_may_come_in_any_order(name: str) -> None:
    agent = AGENTS[name]
    _, setup, right = shuffled(agent, 0, set())
    noisy = make_world(9)[1][0].noisy
    for seed in range(1, 6):
        _, _, found = shuffled(agent, seed, set())
        one, two = belief(agent, found), belief(agent, right)
        np.testing.assert_allclose(one.mean, two.mean, rtol=1e-10, atol=1e-10)
        cov = gaussian.covariance(two)
        np.testing.assert_allclose(gaussian.covariance(one), cov, rtol=1e-10, atol=1e-10)
        channels = (agent.denoiser.predict(setup.denoiser, x.denoiser, noisy) for x in (found, right))
        for a, b in zip(next(channels), next(channels), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def from_scratch(decisions: list[Decision], i: int, hidden: set[int]) -> tuple[Array, Array]:
    """Mean and covariance of theta in trial i: phi itself where the context came, its moments elsewhere."""
    truth, played = make_world()
    precision, first = inverse(KNOWN.prior_cov), KNOWN.prior_mean
    natural_mean = precision @ first
    second = KNOWN.prior_cov + np.outer(first, first)  # of theta, at all decisions: they came first
    for t, (decision, r) in enumerate(zip(decisions, played, strict=True)):
        action = truth.features.table[i, decision.arm[i], D : 2 * D]  # type: ignore[attr-defined]
        variance, row = np.asarray(KNOWN.reward_var, np.float64), quadratic_phi(action, r.context[i])
        if t in hidden:
            seen = Context(decision.context.mean[i], np.broadcast_to(decision.context.cov, (TRIALS, D, D))[i])
            rows, spreads = feature_moments(quadratic_phi, action[None], seen, order=3)
            row, variance = rows[0], variance + (spreads[0] * second).sum()
        precision = precision + np.outer(row, row) / variance
        natural_mean = natural_mean + row * r.reward[i] / variance
    return inverse(precision) @ natural_mean, inverse(precision)


@pytest.mark.parametrize("name", ["late", "unknown-noise"])
def test_in_any_order_it_is_a_recomputation_from_scratch(name: str) -> None:
    _, played = make_world()
    for hidden, seed in product([set[int](), {1, 4}], range(3)):
        agent, shown = AGENTS[name], [t for t in range(ROUNDS) if t not in hidden]
        decisions, _, memory = shuffled(agent, seed, hidden)
        found = belief(agent, memory)
        pairs = np.stack([played[t].noisy - played[t].context for t in shown])
        alone = np.stack([played[t].noisy - KNOWN.context_mean for t in hidden] or [NAN])[: len(hidden)]
        for i in range(TRIALS):
            mean, cov = from_scratch(decisions, i, hidden)
            np.testing.assert_allclose(found.mean[i], mean, rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(gaussian.covariance(found)[i], cov, rtol=1e-10, atol=1e-10)
            if name == "unknown-noise":
                for tally, seen in zip(memory.denoiser, (pairs, alone), strict=True):
                    assert float(tally.seen[i]) == len(seen)
                    np.testing.assert_allclose(tally.total[i], seen[:, i].sum(0), rtol=1e-10, atol=1e-10)
                    right = seen[:, i].T @ seen[:, i]
                    np.testing.assert_allclose(tally.square[i], right, rtol=1e-10, atol=1e-10)
            else:
                inner = inverse(KNOWN.noise_cov)
                outer = inverse(KNOWN.context_cov + KNOWN.noise_cov)
                precision = inverse(KNOWN.bias_cov) + len(pairs) * inner + len(alone) * outer
                natural_mean = inner @ pairs[:, i].sum(0) + outer @ alone[:, i].sum(0)
                np.testing.assert_allclose(memory.denoiser.precision[i], precision, rtol=1e-10)
                np.testing.assert_allclose(
                    memory.denoiser.natural_mean[i], natural_mean, rtol=1e-10, atol=1e-10
                )


@pytest.mark.parametrize("name", ["late", "unknown-noise"])
def test_a_context_that_says_nothing_new_changes_nothing(name: str) -> None:
    """To the last bit, also where some trials of a batch are told something and others are not."""
    truth, played = make_world()
    agent = AGENTS[name]
    setup, memory = begin(agent, truth)
    r, later = played[0], played[1]
    decision = rounds.decide(agent, setup, memory, truth.features, Observation(r.noisy), r.normals)
    memory = rounds.observe(agent, setup, memory, Observation(r.noisy))
    second = rounds.decide(agent, setup, memory, truth.features, Observation(later.noisy), later.normals)
    memory = rounds.observe(agent, setup, memory, Observation(later.noisy))
    memory, second = rounds.reward(agent, setup, memory, second, later.reward)
    memory, _ = rounds.reveal(agent, setup, memory, second, later.context)
    told = np.where(np.arange(TRIALS)[:, None] == 2, r.context, np.nan)
    right, _ = rounds.reward(agent, setup, memory, decision, r.reward)
    paid, known = rounds.reward(agent, setup, memory, decision, r.reward)
    reward_first, _ = rounds.reveal(agent, setup, paid, known, told)
    shown, known = rounds.reveal(agent, setup, memory, decision, told)
    context_first, _ = rounds.reward(agent, setup, shown, known, r.reward)
    untold = np.arange(TRIALS) != 2
    for found in (reward_first, context_first):
        for one, other in zip(leaves(found), leaves(right), strict=True):
            np.testing.assert_array_equal(one[untold], other[untold])
            assert one.size == 1 or not np.array_equal(one[2], other[2]) or one[2].ndim < 2


@pytest.mark.parametrize("name", ["late", "unknown-noise"])
def test_a_context_known_in_part_is_weighed_by_what_is_believed_by_then(name: str) -> None:
    truth, played = make_world()
    agent, r = AGENTS[name], played[0]
    setup, memory = begin(agent, truth)
    decision = rounds.decide(agent, setup, memory, truth.features, Observation(r.noisy), r.normals)
    memory = rounds.observe(agent, setup, memory, Observation(r.noisy))
    memory, decision = rounds.reward(agent, setup, memory, decision, r.reward)
    theta, part = belief(agent, memory), np.where(np.arange(D) > 0, np.nan, r.context)
    assert agent.can.revise is not None
    nothing = np.full_like(part, np.nan)
    _, now = agent.can.revise[0].correct(setup.denoiser, memory.denoiser, r.noisy, nothing, part)
    _, decision = rounds.reveal(agent, setup, memory, decision, part)
    assert decision.term is not None
    for i in range(TRIALS):
        action = truth.features.table[i, decision.arm[i], D : 2 * D]  # type: ignore[attr-defined]
        second = gaussian.covariance(theta)[i] + np.outer(theta.mean[i], theta.mean[i])
        away = Context(now.mean[i], now.cov[i] + 1e-13 * np.eye(D))  # its moments take a root of it
        rows, spreads = feature_moments(quadratic_phi, action[None], away, order=3)
        variance = np.asarray(KNOWN.reward_var) + (spreads[0] * second).sum()
        np.testing.assert_allclose(decision.term.row[i], rows[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(decision.term.variance[i], variance, rtol=1e-9)
        assert variance > 1.01 * np.asarray(KNOWN.reward_var)


@pytest.mark.parametrize("name", ["late", "unknown-noise"])
def test_what_one_trial_is_told_is_nothing_to_the_others(name: str) -> None:
    """To the last bit, though beside a context known in part more has to be worked out."""
    truth, played = make_world()
    agent, (r, later) = AGENTS[name], played[:2]
    setup, memory = begin(agent, truth)
    decision = rounds.decide(agent, setup, memory, truth.features, Observation(r.noisy), r.normals)
    memory = rounds.observe(agent, setup, memory, Observation(r.noisy))
    memory, decision = rounds.reward(agent, setup, memory, decision, r.reward)
    memory = rounds.observe(agent, setup, memory, Observation(later.noisy))
    part = np.where((np.arange(TRIALS)[:, None] == 2) & (np.arange(D) > 0), np.nan, r.context)
    found = [rounds.reveal(agent, setup, memory, decision, told)[0] for told in (r.context, part)]
    others = np.arange(TRIALS) != 2
    for one, two in zip(*map(leaves, found), strict=True):
        np.testing.assert_array_equal(one[others], two[others])
    assert not same_bits(*found)


# The channel, reward or no reward.


def observed(agent: Agent, number: int) -> Iterator[tuple[Setup, Memory, Array]]:
    """Rounds without a reward: what is remembered before each, and its noisy context."""
    truth, played = make_world()
    setup, memory = begin(agent, truth)
    for r in played[:number]:
        yield setup, memory, r.noisy
        memory = rounds.observe(agent, setup, memory, Observation(r.noisy))


def walking(step: float, number: int) -> tuple[Array, Array, Array, Array]:
    """The law of (steps of the bias, contexts, noises), and rows of the contexts and the measurements."""
    covs = [KNOWN.bias_cov, *[step * KNOWN.bias_cov] * (number - 1)]
    covs += [KNOWN.context_cov] * number + [KNOWN.noise_cov] * number
    cov = np.zeros((D * len(covs),) * 2)
    for i, block in enumerate(covs):
        cov[i * D : i * D + D, i * D : i * D + D] = block
    mean = np.concatenate([np.zeros(D * number), *[KNOWN.context_mean] * number, np.zeros(D * number)])
    unit = np.eye(len(cov)).reshape(len(covs), D, -1)
    contexts = unit[number : 2 * number]
    return mean, cov, contexts, unit[:number].cumsum(0) + contexts + unit[2 * number :]


def test_the_channel_learns_without_rewards() -> None:
    """What is believed of a context after so many rounds without any reward, by one conditioning of all."""
    for name in ["alg1-exact", "unfog", "gaps", "late", "drift"]:
        check_the_channel_learns_without_rewards(name)


def check_the_channel_learns_without_rewards(name: str) -> None:
    agent, seen = AGENTS[name], list[Array]()
    for setup, memory, noisy in observed(agent, ROUNDS):
        seen.append(noisy)
        found = agent.denoiser.predict(setup.denoiser, memory.denoiser, noisy)
        mean, cov, contexts, rows = walking(getattr(agent.denoiser, "step", 0.0), len(seen))
        for i in range(TRIALS):
            values = np.concatenate([noisy[i] for noisy in seen])
            centre, spread = given(mean, cov, np.concatenate(rows), values)
            np.testing.assert_allclose(found.mean[i], contexts[-1] @ centre, rtol=1e-9, atol=1e-10)
            covs = np.broadcast_to(found.cov, (TRIALS, D, D))
            right = contexts[-1] @ spread @ contexts[-1].T
            np.testing.assert_allclose(covs[i], right, rtol=1e-9, atol=1e-10)
    assert len(seen) == ROUNDS


def test_the_bias_is_learnt_without_rewards() -> None:
    for name in ["alg1", "alg1-exact", "unfog"]:
        check_the_bias_is_learnt_without_rewards(name)


def check_the_bias_is_learnt_without_rewards(name: str) -> None:
    agent, seen = AGENTS[name], list[Array]()
    for setup, memory, noisy in observed(agent, ROUNDS):
        if seen:
            joint = Joint(KNOWN, len(seen))
            mean, cov = bias.belief(setup.denoiser.sight, memory.denoiser)
            for i in range(TRIALS):
                right = joint.posterior(joint.bias, [*joint.noisy], [noisy[i] for noisy in seen])
                np.testing.assert_allclose(mean[i], right[0], rtol=1e-10, atol=1e-10)
                np.testing.assert_allclose(cov, right[1], rtol=1e-10, atol=1e-10)
        seen.append(noisy)


# What an offer says besides.


def test_what_was_lost_is_not_a_number_to_those_who_know_of_gaps() -> None:
    truth, played = make_world()
    assert [name for name in ORDER_FREE if AGENTS[name].takes_gaps] == ["gaps", "late"]
    noisy, mask = played[0].noisy, (np.arange(D) != 1) * np.ones((TRIALS, 1))
    for agent in AGENTS.values():
        if agent.can.pool is not None:
            continue  # its state in a round is not that in memory
        setup, memory = begin(agent, truth)
        blank = np.nan if agent.takes_gaps else KNOWN.context_mean
        seen = np.where(mask > 0, noisy, blank)
        observation = Observation(np.where(mask > 0, noisy, np.nan), mask)  # what was lost may be anything
        decision = rounds.decide(agent, setup, memory, truth.features, observation, played[0].normals)
        np.testing.assert_array_equal(decision.noisy, seen)
        right = agent.denoiser.predict(setup.denoiser, memory.denoiser, seen)
        # who looks back puts the same law together in another order
        slack = 0.0 if agent.can.look_back is None else 1e-12
        np.testing.assert_allclose(decision.context.mean, right.mean, rtol=0, atol=slack)
        if not agent.awaits_context:
            after = rounds.observe(agent, setup, memory, observation)
            right = agent.denoiser.update(setup.denoiser, memory.denoiser, seen, None)
            assert same_bits(after.denoiser, right)


def test_the_bias_of_a_round_is_told_to_the_privileged_alone() -> None:
    truth, played = make_world()
    observation = Observation(played[0].noisy, bias=truth.bias + 3.0)
    for agent in AGENTS.values():
        setup, memory = begin(agent, truth)
        told = rounds.view(agent, setup, memory, truth.features, observation)
        plain = rounds.view(agent, setup, memory, truth.features, Observation(played[0].noisy))
        assert same_bits(told.context, plain.context) == (agent.can.see_bias is None)
        if agent.can.see_bias is not None:
            other = rounds.start(agent, KNOWN, Privilege(truth.bias + 3.0))
            right = rounds.view(agent, *other, truth.features, Observation(played[0].noisy))
            assert same_bits(told.context, right.context)


def test_arms_and_time_reach_the_chooser(rng: np.random.Generator) -> None:
    for name in ["alg1", "unfog", "alg1-epsilon:decay=1", "alg1-exact-ids", "alg2-toptwo"]:
        check_arms_and_time_reach_the_chooser(name, rng)


def check_arms_and_time_reach_the_chooser(name: str, rng: np.random.Generator) -> None:
    truth, played = make_world()
    agent = Catalogue()[name]
    setup, memory = begin(agent, truth)
    arms = np.arange(K) == rng.integers(0, K, (TRIALS, 1))
    observation = Observation(played[0].noisy, round=np.asarray(4), arms=arms)
    seen = rounds.view(agent, setup, memory, truth.features, observation)
    assert (seen.round, seen.arms) == (observation.round, observation.arms)
    normals = rng.standard_normal((7, TRIALS, agent.chooser.normals(KNOWN)))
    decision = rounds.decide(agent, setup, memory, truth.features, observation, normals[0])
    np.testing.assert_array_equal(decision.arm, arms.argmax(-1))
    np.testing.assert_array_equal(decision.evidence.arm, decision.arm)
    found = rounds.probabilities(agent, setup, memory, truth.features, observation, normals)
    np.testing.assert_allclose(found, arms, atol=1e-14)
    every = observation._replace(arms=None)
    found = rounds.probabilities(agent, setup, memory, truth.features, every, normals)
    view = rounds.view(agent, setup, memory, truth.features, every)
    np.testing.assert_array_equal(found, agent.chooser.probabilities(view, normals))


def test_only_a_chain_takes_steps() -> None:
    for agent in BOTH_KINDS.values():
        setup, memory = begin(agent, make_world()[0])
        if agent.can.sample is None:
            with pytest.raises(ValueError, match=f"^{agent.name}: its learner has no steps to take$"):
                rounds.advance_chain(agent, setup, memory, np.zeros((TRIALS, M)))
        else:
            drawn = np.ones((TRIALS, agent.can.sample.normals(KNOWN, 0)))
            after = rounds.advance_chain(agent, setup, memory, drawn)
            right = agent.can.sample.step(setup.learner, memory.learner, drawn)
            assert same_bits(after, Memory(memory.denoiser, right))


def test_the_problem_is_one_on_which_formulas_can_fail() -> None:
    assert PROBLEM.knowledge().context_mean.any()
    assert (np.abs(KNOWN.noise_cov - np.diag(np.diag(KNOWN.noise_cov))) > 0.01).any()


def test_a_reward_or_a_pair_comes_once() -> None:
    truth, played = make_world()
    for name in ("alg1", "alg2", "unfog-delayed", "late"):
        agent = AGENTS[name]
        setup, memory = begin(agent, truth)
        observation = Observation(played[0].noisy)
        decision = rounds.decide(agent, setup, memory, truth.features, observation, played[0].normals)
        memory, decision = rounds.reward(agent, setup, memory, decision, played[0].reward)
        with pytest.raises(ValueError, match=f"{name}: the reward of this decision is there already"):
            rounds.reward(agent, setup, memory, decision, played[0].reward)
        if agent.awaits_context:
            memory, decision = rounds.reveal(agent, setup, memory, decision, played[0].context)
            with pytest.raises(ValueError, match=f"{name}: the true context .* is known already"):
                rounds.reveal(agent, setup, memory, decision, played[0].context)


def test_what_a_reward_would_teach_counts_the_hidden_context() -> None:
    """An arm's noise is its reward's own and what the belief hides; not that where contexts are shown."""
    for name in ["unfog", "unfog-hetero", "unfog-delayed", "unfog-delayed-hetero"]:
        check_what_a_reward_would_teach_counts_the_hidden_context(name)


def check_what_a_reward_would_teach_counts_the_hidden_context(name: str) -> None:
    agent, (truth, played) = Catalogue()[name], make_world()
    seen = rounds.view(agent, *begin(agent, truth), truth.features, Observation(played[0].noisy))
    trials = np.arange(TRIALS)
    arm = trials % 2
    spread = np.stack([seen.design.covariance(np.full(TRIALS, a)) for a in (0, 1)])[arm, trials]
    hidden = np.einsum("tij,ij->t", spread, KNOWN.prior_cov + np.outer(KNOWN.prior_mean, KNOWN.prior_mean))
    own = np.asarray(KNOWN.reward_var)
    assert (hidden > 0.01 * own).all()
    right = own + (0.0 if agent.awaits_context else hidden)
    np.testing.assert_allclose(np.broadcast_to(seen.noise(arm), (TRIALS,)), right)  # type: ignore[arg-type]
