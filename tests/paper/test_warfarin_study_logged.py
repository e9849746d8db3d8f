"""A log of the record: its probabilities, and the value of every policy."""

import numpy as np
import pytest

from tests.each import each
from tests.paper.people import made
from unfog.paper import warfarin, warfarin_study
from unfog.paper.warfarin import Errors
from unfog.paper.warfarin_study import CLINICAL
from unfog.validation import InputError


@pytest.mark.parametrize("epsilon", [1.0, 0.2])
def test_a_log_says_with_which_probability(epsilon: float) -> None:
    people, errors = made(6000, gaps=0.1), Errors(reported=1.0, lost=0.2)
    found = warfarin_study.log(people, errors, epsilon=epsilon, seed=4)
    assert found.probabilities is not None
    np.testing.assert_allclose(found.probabilities.sum(1), 1)
    np.testing.assert_allclose(found.probabilities.min(1), epsilon / 3)
    np.testing.assert_array_equal(found.probability, found.probabilities[np.arange(found.rounds), found.arm])
    drawn, expected = np.bincount(found.arm, minlength=3), found.probabilities.sum(0)
    spread = (found.probabilities * (1 - found.probabilities)).sum(0)
    assert (np.abs(drawn - expected) < 4 * np.sqrt(spread)).all()  # fails by chance with 2e-4
    usual = warfarin.bucket(warfarin_study.weekly_dose(CLINICAL, found.noisy))
    assert epsilon == 1 or (found.probabilities.argmax(1) == usual).all()


def test_a_log_weighs_out_to_the_value_of_any_policy() -> None:
    """The right dose of all is known, so what each fixed arm would have earned is, too."""
    people = made(20_000)
    found = warfarin_study.log(people, epsilon=0.5, reward="graded", seed=9)
    for arm in range(3):
        weighed = np.where(found.arm == arm, found.reward / found.probability, 0.0)
        value = warfarin.rewards(people.dose, "graded")[:, arm].mean()
        assert abs(weighed.mean() - value) < 4 * weighed.std() / np.sqrt(len(weighed))  # 2e-4 in all
    assert found.true is not None
    assert np.array_equal(found.true, found.noisy)
    assert not np.array_equal(found.arm, warfarin_study.log(people, epsilon=0.5, seed=10).arm)


@each("epsilon", [0.0, 1.5])
def test_bad_floors_are_refused(epsilon: float) -> None:
    with pytest.raises(InputError, match=r"^epsilon: "):
        warfarin_study.log(made(50), epsilon=epsilon)
