"""Which trouble an agent thinks it is in: the weights that it plays with, and their picture."""

from typing import Any

import numpy as np
import pytest
from docs.images import trouble

import unfog
from tests.each import each
from tests.lab.charts import inside
from unfog.agents.catalogue import Catalogue
from unfog.agents.denoise import Adaptive
from unfog.maths.random import RoundDraws
from unfog.simulation.job import truth_draws
from unfog.simulation.player import Player
from unfog.validation import InputError

ODD: Any = {"dim": 2, "actions": 4, "noise_cov": 1.5, "bias_cov": 1.0, "assumed_noise_cov": 0.3}


@pytest.mark.parametrize("odd", [{"missing": 0.2}, {"tails": 3}, {"noise_cov": 300.0}])
@pytest.mark.parametrize("agent", ["adaptive", "adaptive-delayed"])
def test_they_are_the_weights_of_the_agent_that_plays(agent: str, odd: dict[str, Any]) -> None:
    """Readings that are too far to be believed included: the agent is shown them brought within reach."""
    problem, rounds = unfog.GaussianProblem(**ODD | odd), 40
    found = unfog.hypotheses(problem, agent, rounds=rounds, trials=3, seed=4)
    truth = problem.truth(truth_draws(4, range(3), problem.truth_draws()))
    player = Player(Catalogue()[agent], problem, truth, 4, range(3))
    nature = RoundDraws(4, range(3), "rounds", problem.round_normals()).next(rounds)
    normals = player.runner.normals.next(rounds)
    for t in range(rounds):
        emission = problem.emit(truth, nature[:, t], np.asarray(t))
        decision = player.round(emission, normals[:, t], lambda arm: np.zeros(3))
        player.reveal(decision, emission)
        weights = Adaptive().probabilities(player.runner.memory().denoiser)
        np.testing.assert_allclose(found.sel(round=t + 1), weights, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.sum("hypothesis"), 1.0)


def test_the_trouble_is_found() -> None:
    """Noise of five times the told size, in 20 trials after 200 rounds."""
    last = unfog.hypotheses(unfog.GaussianProblem(**ODD), rounds=200).isel(round=-1).mean("trial")
    assert float(last.where(abs(last["size"] - 5) < 0.1, 0.0).sum()) > 0.7
    assert float(last.where(last["tails"].notnull(), 0.0).sum()) < 0.1


def test_the_picture_shows_what_was_found() -> None:
    found = unfog.hypotheses(unfog.GaussianProblem(**ODD), rounds=30, trials=4)
    chart = trouble.figure(found, "a trouble")
    noise, bias, tails = chart.axes
    labels = [text.get_text() for text in noise.get_legend().get_texts()]  # type: ignore[union-attr]
    assert labels == ["11", "5", "2.2", "1", "0.45", "0.2", "0.089"]
    heavy = found.where(found["tails"].notnull(), 0.0).sum("hypothesis").mean("trial")
    np.testing.assert_allclose(np.asarray(tails.get_lines()[0].get_ydata()), heavy)
    tops = [float(np.max(area.get_paths()[0].vertices[:, 1])) for area in bias.collections]  # type: ignore[index]
    assert tops == sorted(tops)
    assert tops[-1] == pytest.approx(1.0)
    assert inside(chart)


@each(
    "given, says",
    [
        ({"agent": "unfog"}, "agent: 'unfog'; allowed: one with a bank"),
        ({"agent": "alg1-exact"}, "agent: 'alg1-exact'; allowed: one with a bank"),
        ({"agent": "nobody"}, "agent: no agent is called 'nobody'"),
        ({"rounds": 0}, "rounds: 0; allowed: "),
        ({"trials": 0}, "trials: 0; allowed: "),
        ({"seed": -1}, "seed: -1; allowed: "),
    ],
)
def test_bad_input_is_refused_by_name(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as error:
        unfog.hypotheses(unfog.GaussianProblem(**ODD), **given)
    assert str(error.value).startswith(says)
