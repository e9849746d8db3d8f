"""Worlds played round by round, with what an agent knew before each."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from unfog.agents.agent import Agent
from unfog.agents.round import Decision, Memory, Setup
from unfog.maths.arrays import Array, Ints
from unfog.simulation.job import Nature, emitted, truth_draws
from unfog.simulation.player import Player
from unfog.worlds.problem import Emission, Problem, Truth


class Round(NamedTuple):
    """A round of all worlds side by side."""

    setup: Setup
    before: Memory  # when it began
    after: Memory
    decision: Decision
    emission: Emission
    noisy: Array  # (worlds, d)  not a number where it was lost
    paid: Array  # (worlds,)
    truth: Truth


def rounds(problem: Problem, agent: Agent, number: int, worlds: int, seed: int) -> Iterator[Round]:
    """So many rounds, as the simulator plays them."""
    trials = range(worlds)
    truth = problem.truth(truth_draws(seed, trials, problem.truth_draws()))
    player = Player(agent, problem, truth, seed, trials)
    nature, uniforms = Nature(problem, seed, trials).next(number)
    draws = player.runner.normals.next(number)
    for t in range(number):
        emission = emitted(problem, truth, nature[:, t], uniforms[:, t], np.asarray(t))
        paid: list[Array] = []

        def pay(arm: Ints, t: int = t, context: Array = emission.context, paid: list[Array] = paid) -> Array:
            score = np.vecdot(truth.features.at(context).row(arm), truth.theta)
            paid.append(problem.reward(score, nature[:, t]))
            return paid[0]

        before = player.runner.memory()
        decision = player.reveal(player.round(emission, draws[:, t], pay), emission)
        lost = np.full_like(emission.noisy, np.nan)
        noisy = emission.noisy if emission.mask is None else np.where(emission.mask > 0, emission.noisy, lost)
        yield Round(
            player.runner.setup, before, player.runner.memory(), decision, emission, noisy, paid[0], truth
        )
