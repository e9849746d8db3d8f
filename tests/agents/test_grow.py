"""Arms added later: as if they had been there from the start, and had never been available."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.agents.world import leaves
from tests.problems import random_knowledge, spd
from unfog.agents import grow
from unfog.agents import round as rounds
from unfog.agents.agent import Agent
from unfog.agents.base import Grows, Learner, RunsChain
from unfog.agents.choose import RandUcb, Thompson
from unfog.agents.denoise import Exact, Incomplete
from unfog.agents.learn import (
    LMC,
    PG,
    Adf,
    Conjugate,
    Coupled,
    Hetero,
    Joint,
    Laplace,
    Revisable,
    Scaled,
    Sites,
    Smoothing,
)
from unfog.agents.round import Decision, Memory, Observation, Setup
from unfog.channel.knowledge import Knowledge
from unfog.features.per_arm import PerArm
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.validation import InputError

D, OLD, NEW, TRIALS, ROUNDS, MIDDLE = 3, 4, 6, 3, 12, 6
RNG = np.random.default_rng(21)
BLOCKS = np.stack([spd(RNG, D + 1, 0.5, 3.0) for _ in range(NEW)])
MEAN = RNG.normal(size=NEW * (D + 1))
OFFERED = np.arange(NEW) < OLD
FIXED: dict[str, Learner] = {
    "conjugate": Conjugate(),
    "hetero": Hetero(),
    "surprise": Hetero(surprise=True),
    "scaled": Scaled(scales=3, doubt=0.5),
    "mixed": Scaled(scales=5, doubt=0.5, mixed=True),
    "revisable": Revisable(),
    "sites": Sites(),
    "adf": Adf(),
    "adf, marginal": Adf(marginal=True),
    "laplace": Laplace(),
    "laplace, marginal": Laplace(marginal=True, steps=3),
    "smoothing": Smoothing(),
    "joint": Joint(nodes=6),
    "coupled": Coupled(),
}
CHAINS: dict[str, Learner] = {
    "lmc": LMC(rate=0.05),
    "lmc, marginal": LMC(rate=0.05, marginal=True),
    "pg": PG(),
}


def knowledge(arms: int, in_blocks: bool) -> Knowledge:
    cov = BLOCKS[:arms]
    base = random_knowledge(seed=22, dim=D)
    return base._replace(
        prior_mean=MEAN[: arms * (D + 1)], prior_cov=cov if in_blocks else gaussian.as_matrix(cov)
    )


def agent(learner: Learner, late: bool = False) -> Agent:
    denoiser = Incomplete(pairs=True) if late else Exact()
    chooser = RandUcb(level=0.5, tail=2.5, growth=0.0)
    return Agent("mine", denoiser, learner, chooser, clip_sd=1.0 if late else None)


class Play:
    """Rounds with some of the arms, the last of which may be closed."""

    def __init__(self, mine: Agent, arms: int, in_blocks: bool) -> None:
        self.agent, self.known = mine, knowledge(arms, in_blocks)
        self.features = PerArm(arms, D)
        self.setup: Setup
        self.memory: Memory
        self.setup, self.memory = rounds.start(mine, self.known)

    def decide(self, t: int, arms: Any = None) -> Decision:
        rng = np.random.default_rng([5, t])
        noisy, normals = rng.normal(0.5, 1.2, (TRIALS, D)), rng.standard_normal((TRIALS, 2))
        if self.features.arms == NEW and arms is None:
            arms = OFFERED
        mask = None if arms is None else np.broadcast_to(arms, (TRIALS, self.features.arms))
        observation = Observation(noisy, round=np.asarray(t), arms=mask)
        self._step(rng)
        made = rounds.decide(self.agent, self.setup, self.memory, self.features, observation, normals)
        self.memory = rounds.observe(self.agent, self.setup, self.memory, observation)
        return made

    def _step(self, rng: np.random.Generator) -> None:
        if self.agent.can.sample is None:
            return
        seen = int(self.memory.learner.past.seen)
        for _ in range(self.agent.can.sample.steps):
            number = self.agent.can.sample.normals(self.known, seen)
            self.memory = rounds.advance_chain(
                self.agent, self.setup, self.memory, rng.standard_normal((TRIALS, number))
            )

    def pay(self, t: int, made: Decision) -> Decision:
        reward = np.random.default_rng([6, t]).normal(1.0, 2.0, TRIALS)
        if self.agent.learner.rewards == "bernoulli":
            reward = (reward > 1).astype(float)
        self.memory, decision = rounds.reward(self.agent, self.setup, self.memory, made, reward)
        return decision

    def reveal(self, made: Decision, context: Array) -> Decision:
        self.memory, decision = rounds.reveal(self.agent, self.setup, self.memory, made, context)
        return decision

    def rounds(self, span: range) -> Iterator[Decision]:
        for t in span:
            yield self.pay(t, self.decide(t))

    def grow(self, in_blocks: bool) -> "Play":
        """From now on with more arms."""
        other = Play(self.agent, NEW, in_blocks)
        told = self.agent, self.known, other.known, self.setup, self.memory
        other.setup, other.memory = grow.grow_agent(*told)
        return other


def close(one: Any, other: Any, tolerance: float = 1e-10) -> None:
    found, right = leaves(one), leaves(other)
    assert len(found) == len(right)
    for x, y in zip(found, right, strict=True):
        assert np.shape(x) == np.shape(y)
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", FIXED)
def test_it_is_as_if_the_arms_had_always_been_there(name: str) -> None:
    """Before any round, after some, and where rewards of decisions from before come later."""
    for in_blocks in (True, False):
        check_that_nothing_seen_yet_is_the_prior(name, in_blocks)
        check_rounds_before_and_after(name, in_blocks)
        check_rewards_of_decisions_from_before(name, in_blocks)


def check_rounds_before_and_after(name: str, in_blocks: bool) -> None:
    few, all_along = (Play(agent(FIXED[name]), arms, in_blocks) for arms in (OLD, NEW))
    arms = [made.arm for made in few.rounds(range(MIDDLE))]
    np.testing.assert_array_equal(arms, [made.arm for made in all_along.rounds(range(MIDDLE))])
    later = few.grow(in_blocks)
    close(later.memory, all_along.memory)
    close(later.setup, all_along.setup)
    every = np.ones(NEW, bool)
    chosen = []
    for t in range(MIDDLE, ROUNDS):
        made = [play.pay(t, play.decide(t, every)) for play in (later, all_along)]
        np.testing.assert_array_equal(made[0].arm, made[1].arm)
        chosen.append(made[0].arm)
    close(later.memory, all_along.memory)
    assert np.max(chosen) >= OLD


def check_that_nothing_seen_yet_is_the_prior(name: str, in_blocks: bool) -> None:
    play = Play(agent(FIXED[name]), OLD, in_blocks)
    later = play.grow(in_blocks)
    close(later.memory, Play(agent(FIXED[name]), NEW, in_blocks).memory)


def again(later: Play, made: Decision) -> Decision:
    """A decision of before, as live makes it again: of what was believed then, with the new arms closed."""
    design = later.features.design(made.context)
    if later.agent.awaits_context and made.known is not None:
        design = later.features.at(made.known)
    belief = grow.grow_belief(later.known, made.evidence.belief)
    evidence = made.evidence.known_to_be(design)._replace(
        features=later.features, belief=belief, context=made.evidence.context
    )
    if made.term is None:
        return made._replace(evidence=evidence)
    more = later.known.prior_mean.shape[-1] - made.term.row.shape[-1]
    row = np.pad(made.term.row, ((0, 0), (0, more)))
    return made._replace(evidence=evidence, term=made.term._replace(row=row))


def check_rewards_of_decisions_from_before(name: str, in_blocks: bool) -> None:
    """Made with the old arms, paid when there are more."""
    few, all_along = (Play(agent(FIXED[name]), arms, in_blocks) for arms in (OLD, NEW))
    waiting = []
    for play in (few, all_along):
        list(play.rounds(range(3)))
        waiting.append([play.decide(t) for t in range(3, 6)])
    later = few.grow(in_blocks)
    for t, made, right in zip(range(3, 6), *waiting, strict=True):
        made = again(later, made)
        later.pay(t, made)
        all_along.pay(t, right)
    close(later.memory, all_along.memory)


@pytest.mark.parametrize("name", ["revisable", "sites"])
def test_contexts_of_decisions_from_before_are_taken_in(name: str) -> None:
    """A part of the context becomes known before or after arms are added, the rest later."""
    for when in ["before", "after"]:
        for paid in [False, True]:
            for in_blocks in [True, False]:
                check_contexts_of_decisions_from_before_are_taken_in(name, when, paid, in_blocks)


def check_contexts_of_decisions_from_before_are_taken_in(
    name: str, when: str, paid: bool, in_blocks: bool
) -> None:
    few, all_along = (Play(agent(FIXED[name], late=True), arms, in_blocks) for arms in (OLD, NEW))
    part, whole = (np.tile([0.3, second, -1.0], (TRIALS, 1)) for second in (np.nan, 2.0))
    waiting = []
    for play in (few, all_along):
        list(play.rounds(range(3)))
        made = play.decide(3)
        made = play.pay(3, made) if paid else made
        waiting.append(play.reveal(made, part) if when == "before" else made)
    later = few.grow(in_blocks)
    waiting[0] = again(later, waiting[0])
    for play, decision in zip((later, all_along), waiting, strict=True):
        decision = play.reveal(decision, part) if when == "after" else decision
        decision = play.reveal(decision, whole)
        if not paid:
            play.pay(3, decision)
    close(later.memory, all_along.memory)


def test_who_awaits_contexts_may_have_them_before_or_after() -> None:
    for first in ["context", "reward"]:
        for in_blocks in [True, False]:
            check_who_awaits_contexts_may_have_them_before_or_after(first, in_blocks)


def check_who_awaits_contexts_may_have_them_before_or_after(first: str, in_blocks: bool) -> None:
    mine = Agent("mine", Exact(pairs=True), Scaled(), RandUcb(growth=0.0))
    few, all_along = (Play(mine, arms, in_blocks) for arms in (OLD, NEW))
    context = np.tile([0.3, 2.0, -1.0], (TRIALS, 1))
    waiting = []
    for play in (few, all_along):
        made = play.decide(3)
        waiting.append(play.reveal(made, context) if first == "context" else play.pay(3, made))
    later = few.grow(in_blocks)
    waiting[0] = again(later, waiting[0])
    for play, decision in zip((later, all_along), waiting, strict=True):
        if first == "context":
            play.pay(3, decision)
        else:
            play.reveal(decision, context)
    close(later.memory, all_along.memory)


@pytest.mark.parametrize("name", CHAINS)
def test_chains_go_on_from_where_they_are(name: str) -> None:
    for in_blocks in [True, False]:
        check_chains_go_on_from_where_they_are(name, in_blocks)


def check_chains_go_on_from_where_they_are(name: str, in_blocks: bool) -> None:
    play = Play(agent(CHAINS[name]), OLD, in_blocks)
    list(play.rounds(range(MIDDLE)))
    later, m = play.grow(in_blocks), OLD * (D + 1)
    before, now = play.memory.learner, later.memory.learner
    np.testing.assert_array_equal(now.theta[..., :m], before.theta)
    np.testing.assert_array_equal(now.theta[..., m:], np.broadcast_to(MEAN[m:], (TRIALS, len(MEAN) - m)))
    np.testing.assert_array_equal(now.past.rows[..., :m, :], before.past.rows)
    assert not now.past.rows[..., m:, :].any()
    assert now.past.rewards is before.past.rewards
    close(later.setup, Play(later.agent, NEW, in_blocks).setup)
    shapes = Play(later.agent, NEW, in_blocks)
    list(shapes.rounds(range(MIDDLE)))
    assert [np.shape(x) for x in leaves(later.memory)] == [np.shape(x) for x in leaves(shapes.memory)]
    list(later.rounds(range(MIDDLE, ROUNDS)))
    assert all(np.isfinite(x).all() for x in leaves(later.memory))
    assert np.abs(later.memory.learner.theta[..., m:] - MEAN[m:]).max() > 0


def test_every_learner_of_the_house_grows() -> None:
    for learner in (FIXED | CHAINS).values():
        assert isinstance(learner, Grows)
    assert {type(x) for x in CHAINS.values()} | {Laplace} == {
        type(x) for x in (FIXED | CHAINS).values() if isinstance(x, RunsChain)
    }


@dataclass(frozen=True, kw_only=True)
class Fixed(Learner):
    """One that believes in its prior, and cannot grow."""

    name = "fixed"
    note = "learns nothing"
    rewards = "gaussian"

    def setup(self, known: Knowledge) -> Any:
        return ()

    def start(self, known: Knowledge, rounds: int | None) -> Any:
        return gaussian.blocks_from_moments(known.prior_mean, known.prior_cov)

    def belief(self, parameters: Any, state: Any) -> Any:
        return state

    def update(self, parameters: Any, state: Any, evidence: Any, reward: Any) -> Any:
        return state


def test_who_cannot_is_refused_by_name() -> None:
    old, new = knowledge(OLD, True), knowledge(NEW, True)
    mine = Agent("mine", Exact(), Fixed(), Thompson())
    with pytest.raises(InputError, match=r"^arms: the learner 'fixed' of 'mine'; allowed: .*\(Grows\)$"):
        grow.grow_agent(mine, old, new, *rounds.start(mine, old))


BLOCKY, PIECE = knowledge(NEW, True), knowledge(NEW, False)
COUPLED = PIECE.prior_cov.copy()
COUPLED[0, -1] = COUPLED[-1, 0] = 0.01
OTHER = BLOCKS.copy()
OTHER[0] *= 2
WRONG: dict[str, tuple[bool, Knowledge, str]] = {
    "shorter": (True, knowledge(OLD - 1, True), "^prior_mean: 12 numbers for 16"),
    "the same": (True, knowledge(OLD, True), "^prior_mean: 16 numbers for 16"),
    "another mean": (True, BLOCKY._replace(prior_mean=MEAN + 1), "^prior_mean: "),
    "another block": (True, BLOCKY._replace(prior_cov=OTHER), "^prior_cov: "),
    "another form": (True, PIECE, "^prior_cov: "),
    "not independent": (False, PIECE._replace(prior_cov=COUPLED), "^prior_cov: with covariances between"),
    "another channel": (True, BLOCKY._replace(noise_cov=2 * BLOCKY.noise_cov), "^noise_cov: changed"),
}


def test_other_knowledge_is_refused() -> None:
    for in_blocks, new, told in WRONG.values():
        old, mine = knowledge(OLD, in_blocks), agent(Conjugate())
        with pytest.raises(InputError, match=told):
            grow.grow_agent(mine, old, new, *rounds.start(mine, old))
