"""How long a trial's round takes in a batch: deciding, learning and being shown what is shown."""

import time

import numpy as np

from unfog.agents.agent import Agent
from unfog.maths.arrays import Array, Ints
from unfog.simulation.job import Nature, emitted, truth_draws
from unfog.simulation.player import Player
from unfog.worlds.problem import Problem

TRIALS = 100
ROUNDS = 50


def seconds(
    agent: Agent, problem: Problem, *, rounds: int = ROUNDS, trials: int = TRIALS, seed: int = 0
) -> float:
    """Seconds of a round of one trial, in a batch of so many, the mean over the first so many rounds.

    What the world does is not counted, but for paying rewards.
    """
    every = range(trials)
    truth = problem.truth(truth_draws(seed, every, problem.truth_draws()))
    player, nature = Player(agent, problem, truth, seed, every), Nature(problem, seed, every)
    spent = 0.0
    for t in range(rounds):
        normals, uniforms = nature.next(1)
        emission = emitted(problem, truth, normals[:, 0], uniforms[:, 0], np.asarray(t))
        draws = player.draws.next(1)[:, 0]

        def pay(arm: Ints, context: Array = emission.context, drawn: Array = normals[:, 0]) -> Array:
            score = np.vecdot(truth.features.at(context).row(arm), truth.theta)
            return problem.reward(score, drawn)

        began = time.perf_counter()
        player.reveal(player.round(emission, draws, pay), emission)
        spent += time.perf_counter() - began
    return spent / (rounds * trials)
