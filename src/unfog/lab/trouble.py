"""Which trouble an agent takes itself to be in: the weights of its hypotheses, round by round."""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from unfog import inputs
from unfog.agents.catalogue import Catalogue, named
from unfog.agents.denoise import Adaptive
from unfog.inputs import InputError
from unfog.maths.arrays import Array
from unfog.maths.streams import RoundDraws
from unfog.simulate import MOST_SEED, MOST_TRIALS
from unfog.simulate.draws import truth_draws
from unfog.worlds.problem import Problem

MOST_ROUNDS = 100_000


def trouble(
    problem: Problem, agent: str = "adaptive", *, rounds: int = 1000, trials: int = 20, seed: int = 0
) -> xr.DataArray:
    """The probability of every hypothesis after each round, over the dimensions trial, round and hypothesis.

    Readings are those that the trials of a run with this seed are shown; what an agent chooses is nothing to
    them. Hypotheses have the coordinates `size` of the noise, `step` of the bias, `tails` (not a number:
    Gaussian) and `sample` (whether contexts are those of the told sample).
    """
    inputs.count("rounds", rounds, most=MOST_ROUNDS)
    inputs.count("trials", trials, most=MOST_TRIALS)
    inputs.count("seed", seed, 0, MOST_SEED)
    [row] = named([agent], "agent", Catalogue(problem.rewards.kind))
    if not isinstance(row.denoiser, Adaptive):
        raise InputError("agent", repr(agent), "one with a bank of hypotheses: adaptive, adaptive-delayed")
    found = np.stack(list(_weights(problem, row.denoiser, rounds, trials, seed)), 1)
    every = row.denoiser.hypotheses(problem.knowledge().sample is not None)
    sizes, steps, tails, sample = zip(*every, strict=True)
    coordinates = {
        "round": np.arange(1, rounds + 1),
        "size": ("hypothesis", list(sizes)),
        "step": ("hypothesis", list(steps)),
        "tails": ("hypothesis", [np.nan if nu is None else nu for nu in tails]),
        "sample": ("hypothesis", list(sample)),
    }
    settings = {"agent": agent, "seed": seed}
    return xr.DataArray(found, coordinates, ("trial", "round", "hypothesis"), "probability", settings)


def _weights(problem: Problem, denoiser: Adaptive, rounds: int, trials: int, seed: int) -> Iterator[Array]:
    """Those after every round, (trials, hypotheses)."""
    truth = problem.truth(truth_draws(seed, range(trials), problem.truth_draws()))
    draws = RoundDraws(seed, range(trials), "rounds", problem.round_normals())
    parameters = denoiser.setup(problem.knowledge(), None)
    state = denoiser.start(parameters)
    for t in range(rounds):
        emission = problem.emit(truth, draws.next(1)[:, 0], np.asarray(t))
        noisy = (
            emission.noisy if emission.mask is None else np.where(emission.mask > 0, emission.noisy, np.nan)
        )
        state = denoiser.update(parameters, state, noisy, emission.context if denoiser.pairs else None)
        yield denoiser.probabilities(state)
