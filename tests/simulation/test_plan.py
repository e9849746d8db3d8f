"""A plan holds every trial once, and what cannot be run is refused in words that say what would do."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unfog
from unfog.agents.catalogue import AGENTS, Catalogue
from unfog.channel.knowledge import Knowledge
from unfog.features.quadrature import quadrature
from unfog.lab.spec import parse
from unfog.simulation import Plan, plan, play
from unfog.simulation.executors.local import Processes, Serial
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem, LogisticProblem

SMALL: dict[str, Any] = {"dim": 2, "actions": 3}
PARTIAL: dict[str, dict[str, Any]] = {"late": {"reveal_delay": 2}, "some": {"revealed": 0.5}}


def waves(action: Any, context: Any) -> Any:
    xp = context.__array_namespace__()
    return xp.concat([xp.sin(action * context), xp.cos(action + context)], axis=-1)


class Cut(GaussianProblem):
    """The quadratic bandit whose prior happens to be in blocks."""

    def knowledge(self) -> Knowledge:
        return super().knowledge()._replace(prior_cov=np.stack([np.eye(2)] * 3))


def made(agents: Any = ("alg1",), **settings: Any) -> Plan:
    return plan([GaussianProblem(**SMALL)], agents, **{"rounds": 5, "trials": 2, "seed": 0} | settings)


def refusal(problem: Any, name: str) -> str:
    with pytest.raises(InputError) as refused:
        plan([problem], ["alg1", name], rounds=5, trials=2, seed=0)
    return str(refused.value)


def test_learners_that_look_back_need_a_denoiser_that_does() -> None:
    """Which denoisers these are is tested where agents are put together."""
    for row, part in (
        ("alg1", "coupled"),
        ("alg2-exact", "smoothing"),
        ("late", "joint:nodes=8:hetero=false"),
    ):
        learner, denoiser = part.partition(":")[0], AGENTS[row].denoiser.name
        assert refusal(GaussianProblem(**SMALL), f"{row}-{part}").startswith(
            f"agents.{row}-{part}.learner: {learner!r} beside the denoiser {denoiser!r};"
            " allowed: beside it a denoiser that "
        )


def test_learners_that_look_back_need_features_that_can_be_lifted() -> None:
    for name in ["alg1-exact-smoothing", "alg1-exact-joint-ucb", "unfog-joint"]:
        check_learners_that_look_back_need_features_that_can_be_lifted(name)


def check_learners_that_look_back_need_features_that_can_be_lifted(name: str) -> None:
    problem = GaussianProblem(**SMALL, features=quadrature(waves, 2))
    learner = Catalogue()[name].learner.name
    assert refusal(problem, name) == (
        f"{name}.learner: {learner!r} with the features Quadrature; allowed: with it a feature map, linear or"
        " quadratic in the context, that can be expected anew for any bias (Liftable)"
    )
    for features in ("product", "quadratic", "per_arm"):
        assert play(GaussianProblem(**SMALL, features=features), [name], rounds=3, trials=2).agents == [name]


def test_learners_that_look_back_need_blocks_to_be_those_of_the_features() -> None:
    for name in ["alg1-exact-smoothing", "unfog-joint", "coupled"]:
        check_learners_that_look_back_need_blocks_to_be_those_of_the_features(name)


def check_learners_that_look_back_need_blocks_to_be_those_of_the_features(name: str) -> None:
    learner = Catalogue()[name].learner.name
    assert refusal(Cut(**SMALL), name) == (
        f"{name}.learner: {learner!r} with this prior in blocks; allowed: a prior in one piece"
    )


LATER = (
    "needs every true context at once;"
    " allowed: agents that take true contexts late and in part, or go without"
)


def test_agents_that_need_every_context_are_refused_where_some_come_late() -> None:
    for name in ["alg2", "alg2-exact", "unfog-delayed", "alg2-exact-hetero-ucb"]:
        for kind in PARTIAL:
            check_agents_that_need_every_context_are_refused_where_some_come_late(name, kind)


def check_agents_that_need_every_context_are_refused_where_some_come_late(name: str, kind: str) -> None:
    assert refusal(GaussianProblem(**SMALL, **PARTIAL[kind]), name) == f"agents: {name!r} {LATER}"


def test_where_it_is_the_learner_that_needs_them_it_says_so() -> None:
    for kind in PARTIAL:
        check_where_it_is_the_learner_that_needs_them_it_says_so(kind)


def check_where_it_is_the_learner_that_needs_them_it_says_so(kind: str) -> None:
    gaussian, logistic = (world(**SMALL, **PARTIAL[kind]) for world in (GaussianProblem, LogisticProblem))
    assert refusal(gaussian, "late-hetero") == f"agents: the learner of 'late-hetero' {LATER}"
    for name in ("late-adf", "unknown-noise-adf", "late-pg"):
        assert refusal(logistic, name) == f"agents: the learner of {name!r} {LATER}"


def test_those_that_take_them_late_or_go_without_are_not() -> None:
    for kind in PARTIAL:
        check_those_that_take_them_late_or_go_without_are_not(kind)


def check_those_that_take_them_late_or_go_without_are_not(kind: str) -> None:
    names = ["late", "unknown-noise", "unfog", "gaps", "alg1", "oracle", "late-greedy"]
    for world in (GaussianProblem, LogisticProblem):
        curves = play(world(**SMALL, **PARTIAL[kind]), names, rounds=5, trials=2)
        assert curves.agents == names


def test_a_spec_is_refused_alike() -> None:
    raw = {
        "problem": {"kind": "gaussian", **SMALL, "reveal_delay": 2},
        "run": {"agents": ["alg2"], "rounds": 5},
    }
    with pytest.raises(InputError, match="'alg2' needs every true context at once"):
        unfog.run(parse(raw))


@given(trials=st.integers(1, 700), workers=st.integers(1, 4), chunk=st.none() | st.integers(1, 800))
def test_batches_hold_every_trial_once(trials: int, workers: int, chunk: int | None) -> None:
    [parts] = made(trials=trials, workers=workers, chunk=chunk).batches
    assert [trial for part in parts for trial in part] == list(range(trials))
    assert chunk is None or max(map(len, parts)) <= chunk
    assert made(trials=trials, workers=1, chunk=chunk).batches == (parts,)  # workers change no piece


def test_odd_lists_of_agents_are_refused() -> None:
    for agents, complaint in [
        ([], "none named"),
        ([AGENTS["alg1"]] * 2, "'alg1' is named twice"),
        ([AGENTS["alg1"], "alg1", "kk"], "'alg1' is named twice"),
        ([3], "a list of names or of rows"),
    ]:
        check_odd_lists_of_agents_are_refused(agents, complaint)


def check_odd_lists_of_agents_are_refused(agents: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        made(agents)


def test_bad_settings_are_refused_by_name() -> None:
    bad: list[tuple[str, object]] = [
        ("rounds", 0),
        ("trials", 0),
        ("seed", -1),
        ("seed", 2**64),
        ("points", 0),
        ("chunk", 0),
        ("workers", 0),
        ("agents", "alg1"),
        ("agents", ["alg1", "nobody"]),
        ("agents", ["alg1", "alg1"]),
    ]
    for field, value in bad:
        with pytest.raises(InputError, match=f"^{field}: ") as refused:
            made(**{field: value})
        assert refused.value.field == field


RUN: Any = unfog.run
PLAY: Any = play
MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "run nothing": (lambda: RUN(None), "experiment: None has no knowledge; allowed: a name of the"),
    "run a number": (lambda: RUN(5), "experiment: 5 has no knowledge"),
    "run a class": (lambda: RUN(GaussianProblem), "experiment: the class GaussianProblem; .* instance"),
    "play a number": (lambda: PLAY(5), "problem: 5 has no knowledge"),
    "play a class": (lambda: PLAY(GaussianProblem), "problem: the class GaussianProblem"),
    "a number executes": (lambda: PLAY(GaussianProblem(), executor=3), "executor: 3 has no workers"),
    "a class executes": (lambda: PLAY(GaussianProblem(), executor=Serial), "executor: the class Serial"),
    "no processes": (lambda: Processes(0), "workers: 0; allowed: a whole number, at least 1"),
    "nobody executes": (lambda: PLAY(GaussianProblem(), executor=Serial(0)), "workers: 0; allowed"),
}


def test_what_python_is_handed_is_refused_by_name() -> None:
    for case in MISTAKES:
        check_what_python_is_handed_is_refused_by_name(case)


def check_what_python_is_handed_is_refused_by_name(case: str) -> None:
    call, told = MISTAKES[case]
    with pytest.raises(InputError, match=f"^{told}"):
        call()
