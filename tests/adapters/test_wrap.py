"""Every wrapped library decides as it would by itself, on contexts that were denoised by hand."""

import copy
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import unfog
from tests.adapters.players import LIBRARIES, as_it_is, behind
from unfog.adapters import wrap
from unfog.adapters.sklearn import Denoiser
from unfog.adapters.wrap import library_of
from unfog.maths.arrays import Array

MEAN = np.array([18.0, 0.5, -4.0])
COV = np.array([[9.0, 1.2, -2.0], [1.2, 0.8, 0.3], [-2.0, 0.3, 4.0]])
NOISE = np.array([[4.0, 0.4, 1.0], [0.4, 0.5, -0.2], [1.0, -0.2, 2.0]])
THETA = np.array([[1.0, 0.1, -1.0, 0.3], [2.0, -0.1, 1.0, 0.0], [-1.0, 0.1, 0.5, -0.4]])
ARMS = ["heat", "wait", "vent"]
NAMES = ["temperature", "rain", "wind"]
ROUNDS = 60


@pytest.fixture(params=list(LIBRARIES))
def library(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    pytest.importorskip(name, reason=f"{name} is not installed")
    return name


@pytest.fixture
def readings(rng: np.random.Generator) -> Array:
    return rng.multivariate_normal(MEAN + 2, COV + NOISE, ROUNDS)


def denoiser(**options: Any) -> Denoiser:
    return Denoiser(NOISE, 0.5 * COV, MEAN, COV, **options)


def played(player: Any, shown: Array) -> list[int]:
    """What it decides when it is shown these contexts, and is paid the same whoever shows them."""
    source, arms = np.random.default_rng(8), []
    for row in shown:
        arms.append(player.decide(row))
        player.update(row, arms[-1], float(THETA[arms[-1]] @ [1.0, *source.multivariate_normal(MEAN, COV)]))
    return arms


def test_a_denoiser_told_nothing_changes_no_decision(library: str, readings: Array) -> None:
    found = played(as_it_is(library), readings)
    assert played(behind(library, Denoiser().fit(readings[:40])), readings) == found
    assert len(set(found)) == 3


def test_the_library_is_given_what_the_denoiser_says(library: str, readings: Array) -> None:
    """By hand: predict, then observe, once a round; lost readings and their precision included."""
    told = [{"noise_cov": (1 + 8 * (t % 2)) * NOISE, "group": "ab"[t % 3 > 0]} for t in range(ROUNDS)]
    readings[::5, 1] = np.nan
    readings[::7, 0] = np.nan
    by_hand = denoiser()
    denoised = [by_hand.transform_one(row, **about) for row, about in zip(readings, told, strict=True)]
    right = played(as_it_is(library), np.array(denoised))
    assert played(behind(library, denoiser(), told), readings) == right
    assert right != played(as_it_is(library), np.where(np.isnan(readings), MEAN, readings))


def test_rewards_that_come_late_meet_what_was_decided_on(readings: Array) -> None:
    """A block of decisions, then its rewards in another order: the learner's state is that by hand."""
    from mabwiser.mab import MAB, LearningPolicy

    bandit, by_hand = MAB(ARMS, LearningPolicy.LinGreedy(), seed=1), denoiser()
    wrapped = wrap(MAB(ARMS, LearningPolicy.LinGreedy(), seed=1), denoiser())
    log = readings[:30]
    batch = denoiser().fit(log)
    wrapped.way.contexts.denoiser, by_hand = copy.deepcopy(batch), copy.deepcopy(batch)
    arms = [ARMS[t % 3] for t in range(30)]
    wrapped.fit(arms, np.arange(30.0), log)
    bandit.fit(arms, np.arange(30.0), by_hand.transform(log))
    live = readings[30:40]
    denoised = np.array([by_hand.transform_one(row) for row in live])
    assert wrapped.predict(live) == bandit.predict(denoised)
    order = np.random.default_rng(4).permutation(10)
    wrapped.partial_fit(arms[:10], np.arange(10.0), live[order])
    bandit.partial_fit(arms[:10], np.arange(10.0), denoised[order])
    for arm in ARMS:
        got, right = (one._imp.arm_to_model[arm].beta for one in (wrapped, bandit))
        np.testing.assert_array_equal(got, right)


def test_several_rows_in_one_call_are_denoised_in_their_order(readings: Array) -> None:
    from bayesianbandits import Arm, ContextualAgent, NormalRegressor, ThompsonSampling

    def made() -> Any:
        arms = [Arm(arm, learner=NormalRegressor(alpha=1.0, beta=2.0)) for arm in ARMS]
        return ContextualAgent(arms, ThompsonSampling(), random_seed=3)

    by_hand, agent, wrapped = denoiser(), made(), wrap(made(), denoiser())
    denoised = np.array([by_hand.transform_one(row) for row in readings[:20]])
    assert wrapped.pull(readings[:20], top_k=2) == agent.pull(denoised, top_k=2)
    assert wrapped.pull(readings[:20]) == agent.pull(denoised)
    wrapped.update(readings[5:9], np.arange(4.0), sample_weight=np.array([1.0, 2.0, 1.0, 1.0]))
    agent.update(denoised[5:9], np.arange(4.0), sample_weight=np.array([1.0, 2.0, 1.0, 1.0]))
    assert wrapped.arm_to_update.action_token == agent.arm_to_update.action_token
    expected = agent.arm_to_update.learner.predict(denoised)
    np.testing.assert_array_equal(wrapped.arm_to_update.learner.predict(denoised), expected)


def test_a_name_that_is_missing_was_lost(readings: Array) -> None:
    """The names are the denoiser's, in its order, whatever the order of a context."""
    from river.bandit import LinUCBDisjoint

    pandas = pytest.importorskip("pandas")
    fitted = Denoiser(NOISE, 0.5 * COV).fit(pandas.DataFrame(readings, columns=NAMES))
    by_hand = copy.deepcopy(fitted)
    policy: Any = LinUCBDisjoint(seed=3)
    wrapped = wrap(LinUCBDisjoint(seed=3), fitted, as_is=["one"])
    context = {"wind": -3.0, "one": 1.0, "rain": None}
    right = {"one": 1.0} | dict(
        zip(NAMES, by_hand.transform_one([np.nan, np.nan, -3.0]).tolist(), strict=True)
    )
    assert wrapped.pull(ARMS, context) == policy.pull(ARMS, right)
    wrapped.update("vent", context, 2.0)
    policy.update("vent", right, 2.0)
    fresh, named = [20.0, 1.0, np.nan], {"rain": 1.0, "one": 1.0, "temperature": 20.0}
    wrapped.update("heat", named, 1.0)
    row = by_hand.transform(pandas.DataFrame([fresh], columns=NAMES))[0]
    policy.update("heat", {"one": 1.0} | dict(zip(NAMES, row.tolist(), strict=True)), 1.0)
    for arm in ("vent", "heat"):
        got, expected = (one._bayes_lin_regs[arm].predict_one(right) for one in (wrapped, policy))
        assert got == pytest.approx(expected, rel=1e-12)


def test_the_rest_is_the_librarys_own() -> None:
    from mabwiser.mab import MAB, LearningPolicy

    wrapped = wrap(MAB(ARMS, LearningPolicy.LinUCB(), seed=1), denoiser())
    wrapped.add_arm("fan")
    assert wrapped.arms[-1] == "fan"
    again = copy.deepcopy(wrapped)
    again.remove_arm("fan")
    assert (again.arms, wrapped.arms) == (ARMS, [*ARMS, "fan"])
    with pytest.raises(AttributeError, match="fly"):
        wrapped.fly()


def unknown() -> list[tuple[Any, dict[str, Any], str]]:
    from bayesianbandits import Agent, Arm, NormalInverseGammaRegressor, ThompsonSampling
    from mabwiser.mab import MAB, LearningPolicy
    from river.bandit import UCB, LinUCBDisjoint
    from vowpalwabbit import Workspace

    libraries = "bayesianbandits, contextualbandits, mabwiser, river, vowpalwabbit"
    agent = Agent([Arm(0, learner=NormalInverseGammaRegressor())], ThompsonSampling())
    adf, arms = "--cb_explore_adf --quiet", {"actions": ["a", "b"]}
    return [
        (3.5, {}, f"^bandit: float of builtins; allowed: a bandit of one of these libraries: {libraries}$"),
        (LinUCBDisjoint, {}, "^bandit: the class LinUCBDisjoint; allowed: .*; of a class, an instance$"),
        (agent, {}, "^bandit: Agent.*; allowed: bayesianbandits' ContextualAgent"),
        (MAB(ARMS, LearningPolicy.UCB1()), {}, "^bandit: .*; allowed: a mabwiser.mab.MAB with a contextual"),
        (UCB(delta=1.0), {}, "^bandit: UCB; allowed: a contextual policy of river"),
        (Workspace("--cb_explore 2 --quiet"), arms, "^bandit: a Workspace made with .*--cb_explore_adf$"),
        (Workspace(adf), {}, "^actions: .*; allowed: one or more names"),
        (Workspace(adf), {"actions": ["a", "a"]}, "^actions: .*; allowed: one or more names, no name twice"),
        (Workspace(adf), {"actions": ["a|b"]}, "^actions: 'a|b'; allowed: names without blanks"),
        (LinUCBDisjoint(), arms, "^actions: .*; allowed: nothing: a bandit of river knows its arms"),
        (LinUCBDisjoint(), {"as_is": "one"}, "^as_is: 'one'; allowed: a list of columns or names"),
        (
            MAB(ARMS, LearningPolicy.LinUCB()),
            {"names": NAMES},
            "^names: .*; allowed: nothing: contexts",
        ),
        (LinUCBDisjoint(), {"remember": 0}, "^remember: 0; allowed: a whole number"),
        (MAB(ARMS, LearningPolicy.LinUCB()), {"as_is": ["x"]}, "^as_is: 'x'; allowed: a whole number"),
    ]


def test_what_cannot_be_wrapped_is_refused_by_name() -> None:
    for bandit, options, said in unknown():
        with pytest.raises(unfog.InputError, match=said):
            wrap(bandit, denoiser(), **options)


def test_a_denoiser_has_to_be_one() -> None:
    from river.bandit import LinUCBDisjoint

    with pytest.raises(unfog.InputError, match=r"^denoiser: 3 has no transform; allowed: a denoiser"):
        wrap(LinUCBDisjoint(), 3)  # type: ignore[arg-type]


def test_a_class_of_ones_own_is_of_the_library_it_inherits_from() -> None:
    from river.bandit import LinUCBDisjoint

    class Mine(LinUCBDisjoint):
        pass

    assert library_of(Mine()) == "river"


@pytest.mark.slow
def test_no_library_is_imported_for_another() -> None:
    code = """
import sys
from river.bandit import LinUCBDisjoint
from unfog.adapters import wrap
class Same:
    def transform(self, rows): return rows
    def transform_one(self, row): return row
before = set(sys.modules)
wrap(LinUCBDisjoint(), Same(), names=["x"]).pull([0, 1], {"x": 1.0})
others = {"mabwiser", "bayesianbandits", "contextualbandits", "vowpalwabbit", "sklearn", "pandas"}
print(sorted(others & (set(sys.modules) - before)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
