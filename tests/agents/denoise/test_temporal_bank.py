"""The bank in time against the likelihoods of joint Gaussians over all moments, one for each hypothesis."""

from typing import Any

import numpy as np
import pytest

import unfog
from tests.agents.denoise.test_temporal import TEMPOS, D, Story, brute, hidden, joint, story, told
from unfog.agents.base import Moment
from unfog.agents.denoise import Temporal, TemporalBank
from unfog.agents.denoise.temporal_bank import Factors
from unfog.channel.dynamics import Dynamics, Moving
from unfog.maths.arrays import Array
from unfog.simulation import play
from unfog.testing import check_denoiser
from unfog.validation import InputError

STILL: dict[str, Any] = {"switch": 0.0}


def scaled(dynamics: Dynamics, factors: Factors) -> Dynamics:
    """The constants of a hypothesis, written out."""
    size, speed = factors
    error, bias, white = dynamics.error, dynamics.bias, dynamics.white
    moved = Moving(bias.cov, bias.time, None if bias.walk is None else speed * bias.walk)
    return dynamics._replace(
        error=None if error is None else Moving(size * error.cov, error.time),
        white=None if white is None else size * white,
        bias=Moving(speed * bias.cov, bias.time) if bias.time < np.inf else moved,
    )


def drawn(seed: int, name: str) -> Story:
    """With values from the model as it is told, so that no hypothesis is ruled out at once."""
    tale, rng = story(seed, name), np.random.default_rng(seed)
    values, vectors = np.linalg.eigh(joint(TEMPOS[name], tale.at).reshape(2 * tale.noisy.size, -1))
    draw = (vectors * np.sqrt(np.maximum(values, 0))) @ rng.normal(size=values.size)
    truths, noisy = told(TEMPOS[name]).context_mean + draw.reshape(2, *tale.noisy.shape)
    return tale._replace(truths=truths, noisy=np.where(np.isnan(tale.noisy), np.nan, noisy))


class Truth:
    """Everything seen so far, under every hypothesis at once."""

    def __init__(self, bank: TemporalBank, dynamics: Dynamics, mean: Array) -> None:
        self.every, self.mean = bank.hypotheses(dynamics), mean
        self.tempos = [scaled(dynamics, factors) for factors in self.every]

    def weights(self, at: Array, noisy: Array, known: Array) -> Array:
        """Logarithms, from marginal likelihoods of all that is a number."""
        value = np.concatenate([(known - self.mean).ravel(), (noisy - self.mean).ravel()])
        seen = np.flatnonzero(~np.isnan(value))
        logs = []
        for dynamics, prior in zip(self.tempos, self.every.values(), strict=True):
            cov = joint(dynamics, at).reshape(value.size, value.size)[np.ix_(seen, seen)]
            square = value[seen] @ np.linalg.solve(cov, value[seen])
            logs.append(np.log(prior) - 0.5 * (square + np.linalg.slogdet(cov)[1]))
        found: Array = np.array(logs) - np.logaddexp.reduce(logs)
        return found

    def context(self, at: Array, noisy: Array, known: Array, wanted: int) -> tuple[Array, Array]:
        """Mean and covariance of the mixture of conditionals."""
        shares = np.exp(self.weights(at, noisy, known))
        each = [brute(dynamics, self.mean, at, noisy, known, wanted) for dynamics in self.tempos]
        mean = sum(p * m for p, (m, _) in zip(shares, each, strict=True))
        cov = sum(p * (c + np.outer(m - mean, m - mean)) for p, (m, c) in zip(shares, each, strict=True))
        return np.asarray(mean), np.asarray(cov)


def close(one: Any, other: Any) -> None:
    np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", TEMPOS)
def test_weights_and_predictions_are_those_of_marginal_likelihoods(name: str) -> None:
    dynamics, tale, bank = TEMPOS[name], drawn(1, name), TemporalBank(**STILL)
    known = told(dynamics)
    parameters, truth = bank.setup(known, None), Truth(bank, dynamics, known.context_mean)
    assert len(truth.every) == (3 if name == "fresh contexts" else 9)
    state, truths = bank.start(parameters), hidden(len(tale.at))
    for t, at in enumerate(tale.at):
        moment, upto = Moment(np.asarray(t), np.asarray(at)), slice(t + 1)
        ready = bank.before(parameters, state, moment)
        found = bank.predict(parameters, ready, tale.noisy[t])
        state = bank.update(parameters, ready, tale.noisy[t], None)
        seen = tale.at[upto], tale.noisy[upto], truths[upto]
        for one, other in zip(found, truth.context(*seen, t), strict=True):
            close(one, other)
        close(state.weights, truth.weights(*seen))
        shown = [] if t % 4 != 1 else [np.arange(D) == t % 3, np.full(D, t == 5)]  # at once, in two parts
        for part in shown:
            before, truths[t] = truths[t].copy(), np.where(part, tale.truths[t], truths[t])
            state, now = bank.reopen(parameters, state, tale.noisy[t], before, truths[t], moment)
            close(state.weights, truth.weights(*seen))
            for one, other in zip(now, truth.context(*seen, t), strict=True):
                close(one, other)
    assert bank.probabilities(state).max() < 1 - 1e-6  # else all would be believed of one alone


@pytest.mark.parametrize("name", ["all", "reverting bias"])
def test_true_contexts_late_in_any_order_in_part_and_put_right_count_once(name: str) -> None:
    dynamics, tale, rng = TEMPOS[name], drawn(2, name), np.random.default_rng(2)
    bank, known, n = TemporalBank(window=12, **STILL), told(dynamics), len(tale.at)
    parameters, truth = bank.setup(known, None), Truth(bank, dynamics, known.context_mean)
    state, truths = bank.start(parameters), hidden(n)
    moments = [Moment(np.asarray(t), np.asarray(at)) for t, at in enumerate(tale.at)]
    for t, moment in enumerate(moments):
        state = bank.update(parameters, bank.before(parameters, state, moment), tale.noisy[t], None)
    for t in (9, 1, 11, 5, 9):  # what was said of round 9 is put right in the end
        for shown in (rng.random(D) < 0.5, rng.random(D) < 0.8):
            before, after = truths[t].copy(), np.where(shown, tale.truths[t] + 0.1 * rng.normal(), truths[t])
            truths[t] = after
            state, now = bank.reopen(parameters, state, tale.noisy[t], before, after, moments[t])
            close(state.weights, truth.weights(tale.at, tale.noisy, truths))
            for one, other in zip(now, truth.context(tale.at, tale.noisy, truths, t), strict=True):
                close(one, other)


def test_what_is_expected_is_the_mixture_before_the_reading() -> None:
    dynamics, tale, bank = TEMPOS["all"], drawn(3, "all"), TemporalBank(**STILL)
    known = told(dynamics)
    parameters, truth = bank.setup(known, None), Truth(bank, dynamics, known.context_mean)
    state = bank.start(parameters)
    for t, at in enumerate(tale.at):
        ready = bank.before(parameters, state, Moment(np.asarray(t), np.asarray(at)))
        found, upto = bank.predict_reading(parameters, ready), slice(t + 1)
        state = bank.update(parameters, ready, tale.noisy[t], None)
    noisy = tale.noisy[upto].copy()
    noisy[-1] = np.nan
    shares = np.exp(truth.weights(tale.at, noisy, hidden(len(noisy))))
    firsts, seconds = [], []
    for one in truth.tempos:
        cov = joint(one, tale.at).reshape(2 * noisy.size, -1)
        value = np.concatenate([hidden(len(noisy)).ravel(), (noisy - known.context_mean).ravel()])
        seen, last = np.flatnonzero(~np.isnan(value)), 2 * noisy.size - D + np.arange(D)
        gain = np.linalg.solve(cov[np.ix_(seen, seen)], cov[np.ix_(seen, last)]).T
        firsts.append(known.context_mean + gain @ value[seen])
        seconds.append(np.diag(cov[np.ix_(last, last)] - gain @ cov[np.ix_(seen, last)]) + firsts[-1] ** 2)
    mean = shares @ np.array(firsts)
    close(found[0], mean)
    close(found[1], shares @ np.array(seconds) - mean**2)


def test_one_hypothesis_is_the_filter_itself() -> None:
    dynamics, tale = TEMPOS["all"], story(4, "all")
    known, bank, alone = told(dynamics), TemporalBank(sizes=1, speeds=1, window=12), Temporal(window=12)
    ours, theirs = bank.setup(known, None), alone.setup(known, None)
    state, same = bank.start(ours), alone.start(theirs)
    for t, at in enumerate(tale.at):
        own = np.eye(D) if t == 5 else None
        moment = Moment(np.asarray(t), np.asarray(at), own)
        one, other = bank.before(ours, state, moment), alone.before(theirs, same, moment)
        for x, y in (
            *zip(
                bank.predict(ours, one, tale.noisy[t]),
                alone.predict(theirs, other, tale.noisy[t]),
                strict=True,
            ),
            *zip(bank.predict_reading(ours, one), alone.predict_reading(theirs, other), strict=True),
        ):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-9)
        shown = tale.truths[t] if t % 3 == 0 else None
        state, same = (
            bank.update(ours, one, tale.noisy[t], shown),
            alone.update(theirs, other, tale.noisy[t], shown),
        )
        worth = bank.value_of_reveal(ours, state), alone.value_of_reveal(theirs, same)
        np.testing.assert_allclose(*worth, rtol=0, atol=1e-9)
    told_late = tale.noisy[4], hidden(1)[0], tale.truths[4], Moment(np.asarray(4), np.asarray(tale.at[4]))
    (state, now), (same, right) = bank.reopen(ours, state, *told_late), alone.reopen(theirs, same, *told_late)
    np.testing.assert_allclose(now.mean, right.mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(state.filters.belief.mean[0], same.belief.mean, rtol=0, atol=1e-9)


def test_a_batch_is_its_trials_whoever_is_shown_what() -> None:
    """With other times, other gaps and other contexts shown late; some too late for the window."""
    dynamics, bank, rng = TEMPOS["all"], TemporalBank(window=4), np.random.default_rng(8)
    known, trials, rounds = told(dynamics), 3, 9
    parameters = bank.setup(known, None)
    noisy, truths = rng.normal(size=(rounds, trials, D)), rng.normal(size=(rounds, trials, D))
    noisy[rng.random(noisy.shape) < 0.2] = np.nan
    truths[rng.random(truths.shape) < 0.6] = np.nan
    at = np.cumsum(rng.exponential(2.0, size=(rounds, trials)), axis=0)

    def play(which: slice | int) -> Any:
        state, blank = bank.start(parameters), np.full_like(noisy[0, which], np.nan)
        for t in range(rounds):
            ready = bank.before(parameters, state, Moment(np.asarray(t), at[t, which]))
            state = bank.update(parameters, ready, noisy[t, which], None)
            for late in (2, 6):
                if (past := t - late) >= 0:
                    moment, shown = Moment(np.asarray(past), at[past, which]), truths[past, which].copy()
                    shown[..., late // 3] = np.nan
                    state, _ = bank.reopen(parameters, state, noisy[past, which], blank, shown, moment)
        return state

    together = play(slice(None))
    assert together.filters.stale.any()
    for trial in range(trials):
        alone = play(trial)
        np.testing.assert_allclose(together.weights[trial], alone.weights, rtol=0, atol=1e-8)
        np.testing.assert_allclose(
            together.filters.belief.mean[trial], alone.filters.belief.mean, rtol=0, atol=1e-8
        )


def test_a_share_of_the_weights_is_dealt_out_anew_between_readings() -> None:
    bank, known = TemporalBank(switch=0.1), told(TEMPOS["all"])
    parameters = bank.setup(known, None)
    state = bank.start(parameters)
    for noisy in drawn(5, "all").noisy:
        state = bank.update(parameters, state, noisy, None)
    shares = np.exp(bank.before(parameters, state, Moment()).weights)
    np.testing.assert_allclose(shares, 0.9 * bank.probabilities(state) + 0.1 * parameters.prior, rtol=1e-12)
    assert parameters.prior[4] == 0.25
    np.testing.assert_allclose(parameters.prior.sum(), 1)


@pytest.mark.parametrize(("size", "speed"), [(4.0, 1.0), (0.25, 1.0), (1.0, 16.0)])
def test_it_finds_the_truth_from_readings_and_a_few_true_contexts(size: float, speed: float) -> None:
    """Over 20 trials the true one of nine hypotheses is the most probable nearly always."""
    wrong: Any = {"error_cov": 0.5 / size, "noise_cov": 0.5 / size, "bias_walk": 0.01 / speed}
    world = unfog.TemporalProblem(
        dim=2, actions=3, error_cov=0.5, noise_cov=0.5, bias_walk=0.01, revealed=0.1
    )
    dynamics = unfog.TemporalProblem(dim=2, actions=3, **wrong).dynamics
    bank = TemporalBank()
    parameters = bank.setup(world.knowledge()._replace(dynamics=dynamics), None)
    state, blank = bank.start(parameters), np.full((20, 2), np.nan)
    rng = np.random.default_rng(3)
    laws: Any = {"normal": rng.standard_normal, "uniform": rng.random}
    truth = world.truth({k: laws[d.law]((20, *d.shape)) for k, d in world.truth_draws().items()})
    for t in range(300):
        seen = world.emit(truth, rng.standard_normal((20, world.round_normals())), np.asarray(t))
        ready = bank.before(parameters, state, Moment(np.asarray(t), seen.at))
        state = bank.update(parameters, ready, seen.noisy, None)
        shown = np.where(rng.random((20, 1)) < 0.1, seen.context, np.nan)
        state, _ = bank.correct(parameters, state, seen.noisy, blank, shown)
    best = np.array(list(bank.hypotheses(dynamics)))[state.weights.argmax(-1)]
    assert (best == (size, speed)).all(-1).mean() >= 0.8


@pytest.mark.slow
def test_both_engines_agree() -> None:
    world = unfog.TemporalProblem(dim=2, actions=4, level_cov=0.0, level_walk=0.0, revealed=0.3, missing=0.2)
    run: Any = {"agents": ["adaptive-temporal"], "rounds": 40, "trials": 3, "seed": 5, "decompose": False}
    right = play(world, **run)
    found = play(world, engine="jax", draws="numpy", precision="float64", **run)
    for loss, values in right.values.items():
        np.testing.assert_allclose(found.values[loss], values, rtol=1e-9, atol=1e-9, err_msg=loss)


def test_it_keeps_the_contract_and_refuses_bad_settings_by_name() -> None:
    check_denoiser(TemporalBank())
    check_denoiser(TemporalBank(sizes=5, speeds=1, distrust=0.0, **STILL))
    bad: tuple[Any, ...] = (
        {"sizes": 2},
        {"speeds": 0},
        {"spacing": 1.0},
        {"slowdown": 0.5},
        {"distrust": 1.0},
        {"switch": -0.1},
        {"window": -1},
        {"pairs": 1},
    )
    for settings in bad:
        with pytest.raises(InputError, match=f"^{next(iter(settings))}: "):
            TemporalBank(**settings)
