"""What is told of a log, found from it, or refused."""

from typing import Any

import numpy as np
import pytest

from tests.each import each
from tests.evaluation.logs import World
from unfog.evaluation.context import EvaluationContext
from unfog.validation import InputError

WORLD = World(d=2, arms=3)


def test_a_channel_is_found_where_enough_true_contexts_are_known() -> None:
    """Of 1,000 pairs each entry of the noise is within four of its standard errors."""
    evaluation = EvaluationContext(WORLD.log(1000, 1, shown=1.0))
    assert evaluation.channel is not None
    assert evaluation.about_channel == "The channel is found from 1000 rounds whose true context is known."
    noise = WORLD.channel.noise_cov
    error = np.sqrt((noise**2 + np.outer(np.diag(noise), np.diag(noise))) / 1000)
    assert (np.abs(evaluation.channel.noise_cov - noise) < 4 * error).all()


def test_with_few_true_contexts_readings_are_taken_as_they_are_and_it_is_said() -> None:
    evaluation = EvaluationContext(WORLD.log(60, 1, shown=0.5))
    assert evaluation.channel is None
    assert "too few to find one" in evaluation.about_channel
    assert (
        EvaluationContext(WORLD.log(60, 1), WORLD.channel).about_channel
        == "The channel is the one that was told."
    )


@each(
    "told, words",
    [
        ({"features": "product"}, r"^actions: None; allowed: numbers for each of the 3 arms"),
        (
            {"features": "product", "actions": np.ones((2, 2))},
            r"^actions: numbers of shape .2, 2.; ",
        ),
        ({"features": "nothing", "actions": np.ones((3, 2))}, r"^features: 'nothing'; "),
        ({"channel": 5}, r"^channel: 5; "),
        ({"channel": {"context_mean": [0.0, 0.0]}}, r"^channel.context_cov: missing; "),
    ],
)
def test_refusals(told: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        EvaluationContext(WORLD.log(10, 1), **told)
