"""Which trouble an agent takes itself to be in: the weights of its hypotheses, round by round."""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from unfog import validation
from unfog.agents.agent import Agent
from unfog.agents.catalogue import Catalogue, select_rows
from unfog.agents.denoise import Adaptive
from unfog.maths.arrays import Array
from unfog.simulation import MOST_SEED
from unfog.simulation.job import Nature, emitted, refuse, truth_draws
from unfog.simulation.player import Player
from unfog.validation import InputError, check_keywords
from unfog.worlds.problem import Problem

MOST_CELLS = 10**7  # rounds of trials whose weights are kept


@check_keywords
def hypotheses(
    problem: Problem, agent: str = "adaptive", *, rounds: int = 1000, trials: int = 20, seed: int = 0
) -> xr.DataArray:
    """The probability of every hypothesis after each round, over the dimensions trial, round and hypothesis.

    They are those of the agent in the trials of a run with this seed. Hypotheses have the coordinates `size`
    of the noise, `step` of the bias, `tails` (not a number: Gaussian) and `sample` (whether contexts are like
    the told ones).

    >>> import unfog
    >>> problem = unfog.GaussianProblem(dim=2, actions=5, noise_cov=5.0, assumed_noise_cov=1.1)
    >>> found = unfog.hypotheses(problem, rounds=100, trials=10)
    >>> last = found.isel(round=-1).mean("trial")
    >>> size = last.groupby("size").sum()  # by how large the noise is, as a multiple of what agents assume
    >>> size.idxmax().round(1).item()
    5.0
    """
    validation.count("rounds", rounds, most=MOST_CELLS)
    validation.count("trials", trials, most=MOST_CELLS // rounds)
    validation.count("seed", seed, 0, MOST_SEED)
    [row] = select_rows([agent], "agent", Catalogue(problem.rewards.kind))
    if not isinstance(row.denoiser, Adaptive):
        raise InputError("agent", repr(agent), "one with a bank of hypotheses: adaptive, adaptive-delayed")
    weights = np.stack(list(_play_weights(problem, row, rounds, trials, seed)), 1)
    channels = row.denoiser.hypotheses(problem.knowledge().sample is not None)
    sizes, steps, tails, sample = zip(*channels, strict=True)
    coordinates = {
        "round": np.arange(1, rounds + 1),
        "size": ("hypothesis", list(sizes)),
        "step": ("hypothesis", list(steps)),
        "tails": ("hypothesis", [np.nan if nu is None else nu for nu in tails]),
        "sample": ("hypothesis", list(sample)),
    }
    settings = {"agent": agent, "seed": seed}
    return xr.DataArray(weights, coordinates, ("trial", "round", "hypothesis"), "probability", settings)


def _play_weights(problem: Problem, agent: Agent, rounds: int, trials: int, seed: int) -> Iterator[Array]:
    """The weights after every round, (trials, hypotheses), of the agent as it plays; all rewards are 0."""
    truth = problem.truth(truth_draws(seed, range(trials), problem.truth_draws()))
    refuse(agent, problem, truth.features)
    player = Player(agent, problem, truth, seed, range(trials))
    nature = Nature(problem, seed, range(trials))
    for t in range(rounds):
        normals, uniforms = nature.next(1)
        emission = emitted(problem, truth, normals[:, 0], uniforms[:, 0], np.asarray(t))
        decision = player.round(emission, player.runner.normals.next(1)[:, 0], lambda _: np.zeros(trials))
        player.reveal(decision, emission)
        weights = player.runner.memory().denoiser.weights
        yield np.broadcast_to(np.exp(weights), (trials, weights.shape[-1]))
