"""Every verb of a live problem and of its store, in each place where problems can be.

The last test makes a place forget each argument that may be left out, and sees that a check notices.
"""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.conformance import CHECKS, CHECKS_OF_STORES, PLACES, Place, in_a_file
from unfog.live import Problem


@pytest.fixture(scope="module", params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One for all checks: each makes problems of its own."""
    with PLACES[request.param](tmp_path_factory.mktemp("place")) as found:
        yield found


@pytest.mark.parametrize("check", CHECKS)
def test_every_problem(place: Place, check: str) -> None:
    CHECKS[check](place)


@pytest.mark.parametrize("check", CHECKS_OF_STORES)
def test_every_store(place: Place, check: str) -> None:
    CHECKS_OF_STORES[check](place)


FORGOTTEN = {
    ("decide", "unit"): "check_each_unit_has_a_bias_of_its_own",
    ("decide", "arms"): "check_some_arms_for_one_decision",
    ("decide", "key"): "check_a_key_stands_for_one_request",
    ("decide", "measured_at"): "check_times_of_readings",
    ("decide", "noise_sd"): "check_a_reading_may_have_a_noise_of_its_own",
    ("decide", "noise_cov"): "check_a_reading_may_have_a_noise_of_its_own",
    ("decide", "logged_arm"): "check_an_arm_that_somebody_else_chose",
    ("decide", "probability"): "check_an_arm_that_somebody_else_chose",
    ("decide_many", "unit"): "check_frames_are_answered_in_kind",
    ("decide_many", "key"): "check_frames_are_answered_in_kind",
    ("decide_many", "measured_at"): "check_frames_are_answered_in_kind",
    ("reward", "key"): "check_a_key_stands_for_one_request",
    ("reward_many", "keys"): "check_several_rewards_at_once",
    ("reveal", "key"): "check_a_key_stands_for_one_request",
    ("cancel", "key"): "check_a_key_stands_for_one_request",
    ("add_arm", "vector"): "check_an_arm_comes_with_its_vector",
    ("update_arms", "add"): "check_arms_come_and_go",
    ("update_arms", "retire"): "check_arms_come_and_go",
    ("update_arms", "restore"): "check_arms_come_and_go",
    ("events", "since"): "check_the_log_says_what_happened",
    ("belief", "unit"): "check_what_is_believed",
    ("predict_rewards", "unit"): "check_what_is_expected_hangs_on_whose_reading_it_is",
    ("predict_rewards", "arms"): "check_what_arms_are_expected_to_earn",
    ("predict_rewards", "measured_at"): "check_times_of_readings",
    ("predict_rewards", "noise_sd"): "check_a_reading_may_have_a_noise_of_its_own",
    ("predict_rewards", "noise_cov"): "check_what_is_expected_hangs_on_whose_reading_it_is",
    ("history", "unit"): "check_the_past",
    ("history", "points"): "check_the_past",
}


def without(verb: Callable[..., Any], name: str) -> Callable[..., Any]:
    signature = inspect.signature(verb)

    def forgets(*given: Any, **named: Any) -> Any:
        bound = signature.bind(*given, **named)
        bound.arguments.pop(name, None)
        return verb(*bound.args, **bound.kwargs)

    return forgets


def is_caught(check: Callable[[Place], None], place: Place) -> bool:
    try:
        check(place)
    except (Exception, pytest.fail.Exception):  # noqa: BLE001
        return True
    return False


def test_a_place_that_forgets_an_argument_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verbs = {name: verb for name, verb in vars(Problem).items() if name[0] != "_" and callable(verb)}
    parameters = ((name, one) for name in verbs for one in inspect.signature(verbs[name]).parameters.values())
    assert {(name, one.name) for name, one in parameters if one.default is not one.empty} == {*FORGOTTEN}
    with in_a_file(tmp_path) as place:
        for (verb, name), check in FORGOTTEN.items():
            CHECKS[check](place)
            with monkeypatch.context() as patch:
                patch.setattr(Problem, verb, without(verbs[verb], name))
                assert is_caught(CHECKS[check], place), f"{verb} without {name}"
