"""Constants of time from series that are known, and times that cannot be used refused by name."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.each import each
from tests.problems import spd
from tests.timed import Truth, drawn, irregular
from unfog.channel.calibration import calibrate
from unfog.channel.dynamics import Dynamics, contexts_model, errors_model, series
from unfog.channel.fit_dynamics import Fit, Timing, fit
from unfog.maths.arrays import Array, Ints
from unfog.validation import InputError

D = 2
LAWS = np.random.default_rng(11)
CONTEXT, NOISE = spd(LAWS, D, 0.2, 3.0), spd(LAWS, D, 0.1, 0.8)
CONTEXTS, ERRORS = Truth(0.02, 3.0, 0.0), Truth(0.02, 5.0, 0.25)
TRUE = {
    "level.walk": CONTEXTS.walk,
    "fast.time": CONTEXTS.time,
    "bias.walk": ERRORS.walk,
    "error.time": ERRORS.time,
    "white.share": ERRORS.white,
}


def one(n: int) -> Ints:
    return np.zeros(n, np.intp)


def pairs(rng: np.random.Generator, n: int, contexts: Truth = CONTEXTS, errors: Truth = ERRORS) -> Any:
    """Noisy and true contexts, and their times."""
    times = irregular(rng, n)
    true = 3.0 + drawn(rng, contexts, times, one(n), CONTEXT)
    return true - 1.0 + drawn(rng, errors, times, one(n), NOISE), true, times


def found(noisy: Array, true: Array, times: npt.ArrayLike, **more: Any) -> Timing:
    timing = calibrate(noisy, true, times=times, **more).timing
    assert timing is not None
    return timing


def covered(seed: int, n: int) -> dict[str, bool]:
    """Whether the limits of each constant hold it."""
    timing = found(*pairs(np.random.default_rng([5, seed]), n))
    return {
        name: timing.constants[name].low <= right <= timing.constants[name].high
        for name, right in TRUE.items()
    }


@pytest.mark.slow
def test_limits_hold_the_truth() -> None:
    held = [covered(seed, 200) for seed in range(6)]
    # Of 6, each at 95 %: 2 or fewer in 9e-5 of the seeds for each of five constants; 5e-4 in all.
    for name in TRUE:
        assert sum(one[name] for one in held) > 2, name


@pytest.mark.soak
def test_limits_hold_the_truth_nineteen_times_of_twenty() -> None:
    held = [covered(seed, 600) for seed in range(1000, 1200)]
    # 90 to 99 % of 200 is what is asked for; at 95 % a constant misses that in 4e-3 of the seeds.
    for name in TRUE:
        assert 180 <= sum(one[name] for one in held) <= 198, name


def test_the_parts_add_up(rng: np.random.Generator) -> None:
    noisy, true, times = pairs(rng, 500)
    whole = calibrate(noisy, true, times=times)
    dynamics, constants = whole.dynamics, whole.constants
    assert dynamics is not None
    assert constants is not None
    assert dynamics.level is not None
    assert dynamics.error is not None
    assert dynamics.bias.walk is not None
    assert dynamics.white is not None
    total = dynamics.error.cov + dynamics.white
    np.testing.assert_allclose(dynamics.white, constants["white.share"].estimate * total, rtol=1e-9)
    np.testing.assert_allclose(dynamics.bias.walk, constants["bias.walk"].estimate * total, rtol=1e-9)
    assert dynamics.error.time == pytest.approx(constants["error.time"].estimate)
    assert dynamics.fast.time == pytest.approx(constants["fast.time"].estimate)
    np.testing.assert_array_equal(dynamics.bias.cov, whole.bias_cov)
    # A covariance by 500 correlated readings is good to one in eight or so: five errors of it.
    np.testing.assert_allclose(total, NOISE, atol=0.6 * np.abs(NOISE).max())
    np.testing.assert_allclose(dynamics.fast.cov, CONTEXT, atol=0.6 * np.abs(CONTEXT).max())
    plain = calibrate(noisy, true)
    assert plain.dynamics is None
    np.testing.assert_array_equal(plain.noise_cov, whole.noise_cov)


def test_units_may_be_changed(rng: np.random.Generator) -> None:
    noisy, true, times = pairs(rng, 250)
    turn = rng.standard_normal((D, D))
    first, other = found(noisy, true, times), found(noisy @ turn, true @ turn, 60.0 * times - 1e4)
    for name, constant in first.constants.items():
        factor = {"walk": 1 / 60, "time": 60.0, "share": 1.0}[name.split(".")[1]]
        np.testing.assert_allclose(np.array(constant) * factor, other.constants[name], rtol=2e-2)
    np.testing.assert_allclose(turn.T @ first.dynamics.fast.cov @ turn, other.dynamics.fast.cov, rtol=1e-2)


@pytest.mark.soak
def test_parts_that_are_not_there_are_not_found() -> None:
    def still(seed: int) -> Timing:
        rng = np.random.default_rng([6, seed])
        return found(*pairs(rng, 250, CONTEXTS._replace(walk=0.0), ERRORS._replace(walk=0.0, white=0.0)))

    # Each of three parts is kept by mistake in one of 20 or fewer: all three gone in 85 %, and less than 10
    # times of 20 in 2e-4 of the seeds. Limits are looked at in the first.
    tempos = [still(seed) for seed in range(20)]
    gone = [
        t.dynamics.level is None and t.dynamics.bias.walk is None and t.dynamics.white is None for t in tempos
    ]
    assert sum(gone) >= 10
    for name in ("level.walk", "bias.walk", "white.share"):
        zeros = [t.constants[name] for t in tempos if t.constants[name].estimate == 0]
        assert all(np.isnan(zero.error) and zero.low == 0 < zero.high < 1 for zero in zeros)
        assert "at most" in str(zeros[0])


def test_moments_far_apart_are_new_each_time(rng: np.random.Generator) -> None:
    noisy, true, times = pairs(rng, 200, Truth(0.0, 0.05, 0.0), Truth(0.0, 0.05, 0.0))
    timing = found(noisy, true, 20 * times)
    assert timing.dynamics.fast.time == 0
    assert timing.dynamics.error is None
    assert timing.dynamics.white is not None
    np.testing.assert_allclose(timing.dynamics.white, np.cov((noisy - true).T), rtol=1e-6)
    assert timing.constants["fast.time"].high < 20
    assert timing.constants["white.share"].estimate == 1


def test_what_cannot_be_told_apart_is_said(rng: np.random.Generator) -> None:
    """A walk, or a time constant longer than all the time there is: both would do."""
    noisy, true, times = pairs(rng, 120, errors=Truth(0.0, 400.0, 0.3))
    timing = found(noisy, true, times)
    assert any("cannot tell" in note and "errors" in note for note in timing.notes)
    assert "cannot tell" in str(timing)


@pytest.mark.slow
def test_a_bias_that_returns(rng: np.random.Generator) -> None:
    n, truth = 800, Truth(0.1, 1.0, 0.0, slow=20.0)
    times = irregular(rng, n)
    known = fit(errors_model(), series(drawn(rng, truth, times, one(n), NOISE), times, one(n)))
    assert known.constants["bias.time"].low < 20.0 < known.constants["bias.time"].high
    assert known.constants["bias.walk"].low < 0.1 < known.constants["bias.walk"].high
    noisy, true, times = pairs(rng, n, errors=truth)
    bias = found(noisy, true, times).dynamics.bias
    assert 5 < bias.time < 80
    assert bias.walk is None


@pytest.mark.slow
def test_cycles_are_found_where_they_are(rng: np.random.Generator) -> None:
    n, truth = 300, Truth(0.0, 3.0, 0.0, cycles=((24.0, 0.6),))
    times = irregular(rng, n)
    known: Fit = fit(
        contexts_model((24.0, 7.0)),
        series(drawn(rng, truth, times, one(n), CONTEXT), times, one(n), (24.0, 7.0)),
    )
    # One draw of four numbers: chi-squared of four, between 0.05 and 5 times its mean in all but 3e-4.
    assert 0.03 < known.constants["cycle 24"].estimate < 3.0
    assert known.law.cycles[0, 1] == 0
    noisy, true, times = pairs(rng, n, truth)
    dynamics: Dynamics = found(noisy, true, times, cycles=(24.0, 7.0)).dynamics
    assert dynamics.periods == (24.0,)


@pytest.mark.slow
def test_groups_have_starts_of_their_own(rng: np.random.Generator) -> None:
    groups, n = 30, 40
    spread, labels = spd(rng, D, 1.0, 6.0), np.repeat(np.arange(groups), n)
    times = np.concatenate([irregular(rng, n) for _ in range(groups)])
    starts = rng.standard_normal((2, groups, D)) @ np.linalg.cholesky(spread).T
    true = drawn(rng, CONTEXTS, times, labels, CONTEXT) + starts[0][labels]
    noisy = true + drawn(rng, ERRORS, times, labels, NOISE) + starts[1][labels]
    mixed = rng.permutation(groups)[labels].argsort(kind="stable")
    timing = found(noisy[mixed], true[mixed], times[mixed], groups=labels[mixed])
    for name in ("fast.time", "error.time", "white.share"):  # at four or five errors: 1e-4
        constant = timing.constants[name]
        assert abs(np.log(constant.estimate / TRUE[name])) < 2.2 * np.log(constant.high / constant.low) / 2
    # A covariance of 30 draws is good to one in four; starts are seen through errors of about 0.4 besides.
    assert timing.dynamics.level is not None
    for part in (timing.dynamics.bias, timing.dynamics.level):
        np.testing.assert_allclose(part.cov, spread, atol=1.2 * np.abs(spread).max())
        assert part.cov.trace() > 0.4 * spread.trace()


def test_several_readings_of_one_moment(rng: np.random.Generator) -> None:
    moments = irregular(rng, 200)
    true = drawn(rng, CONTEXTS, moments, one(200), CONTEXT)
    times, again = np.repeat(moments, 2), np.repeat(true, 2, 0)
    noisy = again + drawn(rng, ERRORS, times, one(400), NOISE)
    timing = found(noisy, again, times)
    assert timing.constants["white.share"].low < ERRORS.white < timing.constants["white.share"].high
    single = found(noisy[::2], true, moments)
    assert single.constants["fast.time"] == pytest.approx(timing.constants["fast.time"])
    with pytest.raises(InputError, match=r"^true: has two contexts at the time"):
        found(noisy, again + 1e-3 * np.arange(400)[:, None], times)


NOISY, RIGHT, TIMES = pairs(np.random.default_rng(3), 40)
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "back": ({"times": TIMES[::-1]}, r"times: \S+ comes after \S+; allowed: a number for each pair"),
    "length": ({"times": TIMES[:-1]}, r"times: float64 of shape \(39,\)"),
    "text": ({"times": ["noon"] * 40}, "times: <U4 of shape"),
    "missing": ({"times": np.where(np.arange(40) == 7, np.nan, TIMES)}, "times: row 7 is nan"),
    "still": ({"times": np.zeros(40)}, "times: has 0 steps forward"),
    "few": (
        {"times": TIMES, "groups": np.arange(40) // 3},
        "times: has 26 steps forward; allowed: at least 34",
    ),
    "cycle": ({"times": TIMES, "cycles": (0.0,)}, "cycles: .*; allowed: periods"),
    "twice": ({"times": TIMES, "cycles": (24, 24.0)}, "cycles: .*; allowed: periods"),
    "cycles alone": ({"cycles": (24.0,)}, "cycles: .*; allowed: none without times"),
}


@each("case", BAD)
def test_times_that_cannot_be_used_are_refused_by_name(case: str) -> None:
    given, why = BAD[case]
    with pytest.raises(InputError, match=f"^{why}"):
        calibrate(NOISY, RIGHT, **given)
