"""Who doses: agents, complete cases, lines in hindsight."""

from typing import Any

import numpy as np
import pytest

from tests.paper.people import PLACE, made, played
from unfog.agents.catalogue import select_rows
from unfog.paper import warfarin, warfarin_study
from unfog.paper.warfarin import COORDINATES, Errors
from unfog.paper.warfarin_study import POLICIES


def test_a_line_absorbs_what_is_affine() -> None:
    """Where nothing is missing, denoising is one affine map for all: the best lines choose the same arms."""
    found = played(made(1200), Errors(reported=3.0, miscalled=0.2))
    np.testing.assert_array_equal(POLICIES["line-naive"](found), POLICIES["line-denoised"](found))
    gappy = played(made(1200), Errors(lost=0.4))
    assert (POLICIES["line-naive"](gappy) != POLICIES["line-denoised"](gappy)).mean() > 0.02


def test_without_errors_the_noisy_line_is_that_of_the_record() -> None:
    found = played(made(1200), Errors())
    np.testing.assert_array_equal(POLICIES["line-naive"](found), POLICIES["line-record"](found))


def test_the_best_line_is_the_least_squares_fit() -> None:
    found = played(made(800), Errors(), reward="graded")
    contexts = found.record[1]
    design = np.column_stack([np.ones(len(contexts)), contexts])
    expected = design @ np.linalg.lstsq(design, found.paid[1], rcond=None)[0]
    np.testing.assert_array_equal(POLICIES["line-record"](found)[1], expected.argmax(1))


@pytest.mark.slow
def test_agents_learn_and_are_shown_the_arm_given_alone() -> None:
    """An arm that is never given cannot matter: its rewards are changed, and nothing else is."""
    found = played(made(1000), Errors(lost=0.2))
    for name in ("naive", "denoised"):
        arms = POLICIES[name](found)
        given = np.eye(3, dtype=bool)[arms]
        other = found._replace(paid=np.where(given, found.paid, 55.0))
        np.testing.assert_array_equal(POLICIES[name](other), arms)
        wrong = warfarin.mistakes(found.dose, arms).wrong
        chance = warfarin.mistakes(found.dose, POLICIES["medium"](found)).wrong.mean()
        assert wrong[:, -300:].mean() < chance - 0.05


def test_complete_cases_are_those_it_decides_for_and_learns_from() -> None:
    found = played(made(700), Errors(lost=0.2))
    lacks = np.asarray(np.isnan(found.noisy).any(-1))
    arms = POLICIES["complete"](found)
    assert (arms[lacks] == warfarin.MEDIUM).all()
    assert (arms[~lacks] != warfarin.MEDIUM).any()
    other = found._replace(paid=np.where(lacks[..., None], -9.0, found.paid))
    np.testing.assert_array_equal(POLICIES["complete"](other), arms)
    whole = played(made(500), Errors())
    np.testing.assert_array_equal(POLICIES["complete"](whole), POLICIES["naive"](whole))


def test_orders_are_paired_and_seeded() -> None:
    people = made(600)
    few, more = (played(people, Errors(lost=0.3), orders=orders) for orders in (2, 3))
    np.testing.assert_array_equal(few.noisy, more.noisy[:2])
    assert not np.array_equal(few.dose[0], few.dose[1])
    assert sorted(np.concat([few.dose[0], few.dose[1]])) != sorted(
        2 * few.dose[0].tolist()
    )  # others set apart
    asked: dict[str, Any] = {"policies": ["naive", "medium"], "orders": 2, "apart": 300}
    once, again, other = (warfarin_study.compare(people, seed=seed, **asked) for seed in (1, 1, 2))
    assert np.array_equal(once["naive"].wrong, again["naive"].wrong)
    assert not np.array_equal(once["naive"].wrong, other["naive"].wrong)


def test_those_set_apart_tell_of_the_channel() -> None:
    people = made(1600)
    found = played(people, Errors(reported=2.0), apart=1500)
    assert found.noisy.shape == (3, 100, len(COORDINATES))
    place = PLACE["height"]
    size = 6.0 / people.contexts[:, place].std()
    # 1,500 pairs: 5 standard errors of a deviation.
    assert (np.abs(np.sqrt(found.assumed.noise_cov[:, place, place]) / size - 1) < 5 / np.sqrt(3000)).all()


def test_the_catalogue_has_the_agents() -> None:
    naive, denoised = select_rows([warfarin_study.NAIVE, warfarin_study.DENOISED])
    assert type(naive.learner) is type(denoised.learner)
    assert type(naive.chooser) is type(denoised.chooser)
    assert denoised.takes_gaps
    assert not naive.takes_gaps
