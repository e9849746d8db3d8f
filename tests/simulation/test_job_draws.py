"""The draws of a learner's chain: as many as its steps take, from a stream of their own."""

import numpy as np

from unfog.agents.catalogue import Catalogue
from unfog.agents.runner import StepDraws
from unfog.maths.logistic import normals as latent_normals
from unfog.maths.random import generator
from unfog.simulation.job import truth_draws
from unfog.worlds.problem import Draws
from unfog.worlds.synthetic import LogisticProblem

PROBLEM = LogisticProblem(dim=2, actions=6)


def test_steps_take_their_draws_from_a_stream_of_their_own() -> None:
    known, rows = PROBLEM.knowledge(), Catalogue("bernoulli")
    draws = StepDraws(5, [0, 3], rows["alg1-pg:sweeps=2"].can.sample, known)
    first, second = draws.next(0), draws.next(1)
    assert (first.shape, second.shape) == ((2, 2, 6), (2, 2, 6 + latent_normals()))
    for i, trial in enumerate((0, 3)):
        source = generator(5, trial, "learner")
        assert np.array_equal(first[:, i], source.standard_normal((2, 6)))
        assert np.array_equal(second[:, i], source.standard_normal(second.shape[::2]))
    assert StepDraws(5, [0, 3], rows["alg1-adf"].can.sample, known).next(4).shape == (0, 2, 0)


def test_the_truth_of_a_trial_depends_on_the_trial_alone() -> None:
    wanted = {"theta": Draws("normal", (4,)), "actions": Draws("uniform", (3, 2))}
    many, one = truth_draws(7, [0, 2, 9], wanted), truth_draws(7, [2], wanted)
    assert {name: draws.shape for name, draws in many.items()} == {"theta": (3, 4), "actions": (3, 3, 2)}
    assert np.array_equal(many["theta"][1], generator(7, 2, "theta").standard_normal(4))
    assert np.array_equal(many["actions"][1], generator(7, 2, "actions").random((3, 2)))
    assert all(np.array_equal(many[name][1:2], one[name]) for name in wanted)
