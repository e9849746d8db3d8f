"""The recorded world on made-up records: rows in order, knowledge from the calibration alone, two engines."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

from tests.each import each
from tests.problems import covariance_error, spd, within
from unfog.channel.calibration import calibrate
from unfog.maths.arrays import Array
from unfog.simulation import play
from unfog.simulation.job import truth_draws
from unfog.validation import InputError
from unfog.worlds.problem import Emission, Truth
from unfog.worlds.record import Record, Recorded

ROWS, CALIBRATION, D = 300, 120, 4
AGENTS = ["alg1", "alg1-exact", "alg2", "alg2-exact", "naive", "kk"]


def made_up(seed: int = 6, rows: int = ROWS) -> Record:
    """Contexts that drift, sensors that are bent, biased by the week and skewed."""
    rng = np.random.default_rng(seed)
    true = (
        3 + np.cumsum(0.1 * rng.standard_normal((rows, D)), 0) + rng.standard_normal((rows, D)) @ spd(rng, D)
    )
    weeks = np.arange(rows) // 23  # the calibration ends within one
    noise = rng.exponential(0.7, (rows, D)) + rng.standard_normal((weeks[-1] + 1, D))[weeks]
    times = np.cumsum(rng.choice([1.0, 1.0, 0.0, 30.0], rows))
    return Record(true, np.array([2.0, -3.0, 0.1, 40.0]) * (true + noise) + 7, weeks, times)


@dataclass(frozen=True, kw_only=True, eq=False)
class Made(Recorded):
    """A record made up in memory."""

    calibration: int = CALIBRATION
    actions: int | Array = 6
    given: Record = field(default_factory=made_up)
    reads: list[int] = field(default_factory=list)
    dim: ClassVar[int] = D

    def record(self) -> Record:
        self.reads.append(1)
        return self.given


def truth_of(problem: Recorded, trials: int, seed: int = 0) -> Truth:
    return problem.truth(truth_draws(seed, range(trials), problem.truth_draws()))


def emitted(problem: Recorded, truth: Truth, number: int, rng: np.random.Generator) -> Emission:
    normals = rng.standard_normal((len(truth.theta), problem.round_normals()))
    return problem.emit(truth, normals, np.asarray(number))


def expected(record: Record) -> tuple[Array, Array]:
    """Contexts and noisy contexts the long way: a line for each sensor, the mean over weeks taken off."""
    first = record.true[:CALIBRATION]
    contexts = 1 + (record.true - first.mean(0)) / first.std(0, ddof=1)
    noisy = np.empty_like(contexts)
    for i in range(D):
        gain, offset = np.polyfit(contexts[:CALIBRATION, i], record.raw[:CALIBRATION, i], 1)
        noisy[:, i] = (record.raw[:, i] - offset) / gain
    errors, weeks = (noisy - contexts)[:CALIBRATION], record.groups[:CALIBRATION]
    bias = np.mean([errors[weeks == week].mean(0) for week in np.unique(weeks)], axis=0)
    return contexts, noisy - bias


def test_rounds_are_the_rows_in_order(rng: np.random.Generator) -> None:
    problem = Made()
    truth = truth_of(problem, 50)
    contexts, noisy = expected(problem.given)
    played = ROWS - CALIBRATION
    first = np.asarray(truth.first)
    assert set(first) <= set(range(played))
    assert len(set(first)) > 20
    for number in (0, 1, 57, played - 1, played, 2 * played + 3):
        rows = CALIBRATION + (first.astype(int) + number) % played
        found = emitted(problem, truth, number, rng)
        np.testing.assert_allclose(found.context, contexts[rows], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(found.noisy, noisy[rows], rtol=1e-9, atol=1e-9)


def test_a_block_is_its_rounds(rng: np.random.Generator) -> None:
    problem = Made()
    truth = truth_of(problem, 3)
    normals = rng.standard_normal((3, 8, problem.round_normals()))
    wide = truth._replace(bias=truth.bias[:, None], first=np.asarray(truth.first)[:, None])
    block = problem.emit(wide, normals, np.arange(8))
    for number in range(8):
        one = problem.emit(truth, normals[:, number], np.asarray(number))
        assert np.array_equal(block.context[:, number], one.context)
        assert np.array_equal(block.noisy[:, number], one.noisy)


@pytest.mark.parametrize("contexts", ["data", "gaussian"])
def test_time_is_that_of_the_rows_and_never_goes_back(contexts: str, rng: np.random.Generator) -> None:
    problem = Made(contexts=contexts)
    truth = truth_of(problem, 50)
    times, played = problem.given.times[CALIBRATION:], ROWS - CALIBRATION
    first = np.asarray(truth.first).astype(int)
    at = np.stack([np.asarray(emitted(problem, truth, t, rng).at) for t in range(3 * played)], 1)
    walked = first[:, None] + np.arange(3 * played)
    before = walked < played
    assert np.array_equal(at[before], times[walked[before]])
    steps = np.diff(at, axis=1)
    wraps = np.diff(walked // played, axis=1) > 0
    span = times[-1] - times[0]
    assert np.array_equal(steps[~wraps], (times[1:] - times[:-1])[walked[:, 1:][~wraps] % played - 1])
    assert ((steps[wraps] >= span + 1000) & (steps[wraps] < span + 1000 + 168)).all()
    assert set(np.round((at - times[walked % played]) % 168, 9).ravel()) == {0.0}


def test_agents_are_told_what_the_calibration_says() -> None:
    problem = Made()
    contexts, noisy = expected(problem.given)
    head = slice(CALIBRATION)
    right = calibrate(noisy[head], contexts[head], groups=problem.given.groups[head])
    known = problem.knowledge()
    for part in ("context_mean", "context_cov", "noise_cov", "bias_cov"):
        np.testing.assert_allclose(getattr(known, part), getattr(right, part), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(known.context_mean, np.ones(D), rtol=1e-12)
    np.testing.assert_allclose(right.bias, 0, atol=1e-12)


def test_later_rows_tell_agents_nothing() -> None:
    record = made_up()
    later = np.arange(ROWS)[:, None] >= CALIBRATION
    other = record._replace(
        true=np.where(later, record.true**2, record.true), raw=np.where(later, -record.raw, record.raw)
    )
    one, two = Made(given=record).knowledge(), Made(given=other).knowledge()
    assert all(np.array_equal(getattr(one, part), getattr(two, part)) for part in one._fields)
    hind, told = Made(given=other, hindsight=True).knowledge(), Made(given=record, hindsight=True).knowledge()
    assert not np.allclose(hind.noise_cov, told.noise_cov)


def test_hindsight_keeps_the_units(rng: np.random.Generator) -> None:
    problem, wise = Made(), Made(hindsight=True)
    truth = truth_of(problem, 40)
    assert np.array_equal(emitted(problem, truth, 3, rng).context, emitted(wise, truth, 3, rng).context)
    np.testing.assert_allclose(
        wise.knowledge().context_mean, expected(wise.given)[0][CALIBRATION:].mean(0), rtol=1e-12
    )


def test_the_model_stands_in_for_data(rng: np.random.Generator) -> None:
    trials = 40_000
    both = Made(contexts="gaussian", channel="gaussian")
    known, truth = both.knowledge(), truth_of(both, 1)
    many = Truth(truth.theta, truth.bias, truth.features, np.zeros(trials))
    normals = rng.standard_normal((trials, both.round_normals()))
    found = both.emit(many, normals, np.asarray(0))
    # 28 tests at 5 standard errors: 2e-5.
    assert within(found.context.mean(0), known.context_mean, np.sqrt(np.diag(known.context_cov) / trials))
    assert within(np.cov(found.context.T), known.context_cov, covariance_error(known.context_cov, trials))
    errors = found.noisy - found.context
    assert within(errors.mean(0), truth.bias[0], np.sqrt(np.diag(known.noise_cov) / trials))
    assert within(np.cov(errors.T), known.noise_cov, covariance_error(known.noise_cov, trials))
    # Each part can be had alone, with the same draws.
    channel = Made(channel="gaussian").emit(many, normals, np.asarray(0))
    np.testing.assert_allclose(channel.noisy - channel.context, errors, atol=1e-12)
    assert (channel.context == channel.context[0]).all()
    unbiased = many._replace(bias=np.zeros_like(many.bias))
    contexts = Made(contexts="gaussian").emit(unbiased, normals, np.asarray(0))
    assert np.array_equal(contexts.context, found.context)
    first = np.subtract(*reversed(expected(both.given)))[CALIBRATION]
    np.testing.assert_allclose(contexts.noisy - contexts.context, np.tile(first, (trials, 1)), atol=1e-9)


def test_there_is_a_bias_only_where_it_is_drawn() -> None:
    assert not truth_of(Made(), 5).bias.any()
    assert truth_of(Made(channel="gaussian"), 5).bias.all()


@pytest.mark.parametrize(
    ("fields", "agents"),
    [({}, ["alg1-exact", "kk"]), ({"channel": "gaussian"}, ["alg1"]), ({"contexts": "gaussian"}, ["alg2"])],
)
@pytest.mark.slow
def test_both_engines_play_the_same(fields: dict[str, Any], agents: list[str]) -> None:
    run: dict[str, Any] = {"rounds": 230, "trials": 6, "seed": 3, "points": 5}
    numpy = play(Made(**fields), agents, **run)
    jax = play(Made(**fields), agents, engine="jax", draws="numpy", precision="float64", **run)
    for loss, values in numpy.values.items():
        np.testing.assert_allclose(jax.values[loss], values, rtol=1e-9, atol=1e-9, err_msg=loss)
    assert numpy.values["regret"].min() > 0


@pytest.mark.slow
def test_single_precision_starts_within_the_data() -> None:
    one = play(Made(), ["alg2"], rounds=40, trials=300, engine="jax", precision="float32", points=1)
    assert np.isfinite(one.values["regret"]).all()


@pytest.mark.slow
def test_batches_and_workers_do_not_change_a_bit() -> None:
    whole = play(Made(), AGENTS, rounds=150, trials=7)
    for cut in ({"chunk": 1}, {"chunk": 4, "workers": 2}):
        parts = play(Made(), AGENTS, rounds=150, trials=7, **cut)  # type: ignore[arg-type]
        for loss, values in whole.values.items():
            assert np.array_equal(parts.values[loss], values), (cut, loss)


def test_regret_is_against_the_context_itself(rng: np.random.Generator) -> None:
    problem = Made()
    found = play(problem, ["naive"], rounds=1, trials=9, seed=2)
    assert np.array_equal(found.values["regret"], found.values["regret_true_context"])


def test_nobody_can_be_told_a_bias_that_is_not_there() -> None:
    with pytest.raises(InputError, match=r"^agents: 'oracle' is told the bias; allowed: agents that need"):
        play(Made(channel="gaussian"), ["oracle"], rounds=5, trials=2)


def test_rewards_are_scores_and_noise(rng: np.random.Generator) -> None:
    problem = Made(reward_var=4.0)
    normals = rng.standard_normal((5, problem.round_normals()))
    score = rng.standard_normal(5)
    np.testing.assert_allclose(problem.reward(score, normals), score + 2 * normals[:, -1], rtol=1e-14)
    truth = truth_of(problem, 5)
    context = emitted(problem, truth, 0, rng).context
    actions: Array = truth.features.actions  # type: ignore[attr-defined]
    right = np.einsum("td,tkd,td->tk", truth.theta, actions, context)
    np.testing.assert_allclose(truth.features.at(context).scores(truth.theta), right, rtol=1e-12)


def test_the_record_is_asked_for_once_and_late() -> None:
    problem = Made()
    assert not problem.reads
    play(problem, ["naive", "kk"], rounds=5, trials=2)
    assert problem.reads == [1]


BAD: dict[str, tuple[object, str]] = {
    "calibration": (4, "4; allowed: a whole number, at least 5"),
    "contexts": ("real", "'real'; allowed: data, gaussian"),
    "channel": (1, "1; allowed: data, gaussian"),
    "hindsight": ("no", "'no'; allowed: True or False"),
    "actions": (0, "0; allowed: a whole number"),
    "action_law": ("even", "'even'; allowed: normal, uniform, folded"),
    "prior_mean": ([1.0], ".*allowed: a number or a list of 4 numbers"),
    "prior_cov": (-1.0, ".*has the variance -1"),
    "reward_var": (0, "0; allowed: a positive number"),
}


@each("name", BAD)
def test_a_bad_field_is_refused_by_name(name: str) -> None:
    value, why = BAD[name]
    with pytest.raises(InputError, match=f"^{name}: {why}"):
        Made(**{name: value})  # type: ignore[arg-type]


def test_a_calibration_must_leave_something_to_play() -> None:
    with pytest.raises(InputError, match=r"^calibration: 300; allowed: fewer than the record's 300 rows"):
        Made(calibration=ROWS).knowledge()


def test_a_calibration_within_one_week_is_refused_by_its_own_name() -> None:
    with pytest.raises(InputError, match=r"^calibration: 20, in which all rows are of one group"):
        play(Made(calibration=20), ["alg1"], rounds=3, trials=2)
