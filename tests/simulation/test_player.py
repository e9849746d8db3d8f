"""True contexts that come late, in part, or never: when a player hands them over, and what comes of it."""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.problems import inverse, random_problem
from unfog.agents import round as rounds
from unfog.agents.agent import Agent
from unfog.agents.base import Denoiser, Learner
from unfog.agents.choose import Greedy, Thompson
from unfog.agents.denoise import Exact, Incomplete, UnknownNoise
from unfog.agents.learn import Conjugate, Revisable
from unfog.agents.round import Observation
from unfog.features import Context
from unfog.features.quadratic import quadratic
from unfog.maths.arrays import Array
from unfog.simulation import play
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem

D = 2


class Message(NamedTuple):
    """A true context handed over."""

    after: int  # rounds taken in by then
    noisy: Array
    before: Array
    context: Array


class Log:
    """All that a denoiser is told."""

    def __init__(self) -> None:
        self.noisy: list[Array] = []
        self.messages: list[Message] = []
        self.state: Any = None


@dataclass(frozen=True, kw_only=True)
class Logger(Incomplete):
    """A denoiser that keeps all it is told."""

    pairs: bool = True
    log: Log = field(default_factory=Log, compare=False)

    name = "logger"

    def update(self, parameters: Any, state: Any, noisy: Array, context: Array | None) -> Any:
        self.log.noisy.append(noisy)
        self.log.state = super().update(parameters, state, noisy, context)
        return self.log.state

    def correct(
        self, parameters: Any, state: Any, noisy: Array, before: Array, after: Array
    ) -> tuple[Any, Context]:
        self.log.messages.append(Message(len(self.log.noisy), noisy, before, after))
        self.log.state, context = super().correct(parameters, state, noisy, before, after)
        return self.log.state, context


def row(name: str, denoiser: Denoiser, learner: Learner) -> Agent:
    return Agent(name, denoiser, learner, Thompson(), name, "a test")


def logged(problem: GaussianProblem, pairs: bool = True, **settings: Any) -> Log:
    denoiser = Logger(pairs=pairs)
    play(problem, [row("log", denoiser, Revisable())], decompose=False, **settings)
    return denoiser.log


def clear(revealed: float, late: int) -> GaussianProblem:
    """A channel so clear that the context can be read off the measurement."""
    return GaussianProblem(
        dim=D,
        actions=3,
        noise_cov=1e-12,
        bias_cov=1e-12,
        context_mean=1.0,
        revealed=revealed,
        reveal_delay=late,
    )


def test_a_context_comes_as_many_rounds_later_as_told() -> None:
    for late in [0, 50, 128]:
        check_a_context_comes_as_many_rounds_later_as_told(late)


def check_a_context_comes_as_many_rounds_later_as_told(late: int) -> None:
    log = logged(clear(0.5, late), rounds=140, trials=6)
    assert len(log.noisy) == 140
    assert [message.after for message in log.messages] == list(range(late + 1, 141))
    for t, (_, noisy, before, context) in enumerate(log.messages):
        assert np.array_equal(noisy, log.noisy[t])
        assert np.isnan(before).all()
        shown = ~np.isnan(context)
        assert np.array_equal(shown.any(-1), shown.all(-1))
        np.testing.assert_allclose(context[shown], noisy[shown], atol=1e-4)


def test_as_many_contexts_come_as_told() -> None:
    """Within five standard errors: wrong once in a million runs."""
    for revealed in [0.0, 0.2, 0.7, 1.0]:
        check_as_many_contexts_come_as_told(revealed)


def check_as_many_contexts_come_as_told(revealed: float) -> None:
    log = logged(clear(revealed, 3), rounds=203, trials=40)
    shown = np.stack([~np.isnan(message.context[:, 0]) for message in log.messages])
    assert shown.shape == (200, 40)
    assert abs(shown.mean() - revealed) <= 5 * np.sqrt(revealed * (1 - revealed) / shown.size)
    assert revealed in (0, 1) or (shown.any(0) & ~shown.all(0)).all()


def test_agents_that_are_not_shown_contexts_are_not() -> None:
    log = logged(clear(0.5, 2), pairs=False, rounds=20, trials=3)
    assert len(log.noisy) == 20
    assert log.messages == []


def test_after_a_run_the_belief_is_that_of_all_it_was_told() -> None:
    problem, plain = (
        GaussianProblem(dim=D, actions=3, context_mean=1.0, revealed=0.4, reveal_delay=7),
        Incomplete(),
    )
    log = logged(problem, rounds=60, trials=5)
    parameters = plain.setup(problem.knowledge(), None)
    state = plain.start(parameters)
    told = [message.context for message in log.messages] + [np.full((5, D), np.nan)] * 7
    for noisy, context in zip(log.noisy, told, strict=True):
        state = plain.update(parameters, state, noisy, context)
    for found, right in zip(log.state, state, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("pairs", [True, False])
def test_shown_everything_at_once_or_nothing_it_is_exact(pairs: bool) -> None:
    parts: dict[str, tuple[Denoiser, Learner]] = {
        "exact": (Exact(pairs=pairs), Conjugate()),
        "late": (Incomplete(pairs=pairs), Revisable(hetero=False)),
        "both": (Incomplete(pairs=pairs), Conjugate()),
    }
    # Greedy does not hang on which root of a covariance a learner keeps.
    rows = [replace(row(name, *two), chooser=Greedy()) for name, two in parts.items()]
    regret = play(random_problem(seed=3), rows, rounds=150, trials=8).values["regret"]
    assert regret[0, :, -1].mean() > 1
    np.testing.assert_allclose(regret[1], regret[0], rtol=1e-8)
    np.testing.assert_allclose(regret[2], regret[0], rtol=1e-8)


def test_a_context_in_pieces_or_corrected_is_the_context_at_once(rng: np.random.Generator) -> None:
    """Whatever was said of the contexts meanwhile, in any order: only what stands in the end counts."""
    agent, problem = row("late", Incomplete(pairs=True), Revisable()), random_problem(seed=8)
    known, features = problem.knowledge(), quadratic(rng.normal(size=(6, 3)))
    setup, memory = rounds.start(agent, known)
    noisy, truths, rewards = rng.normal(size=(5, 3)), rng.normal(size=(5, 3)), rng.normal(size=5)
    decisions, pieces = [], np.where(np.eye(3) > 0, 1.0, np.nan)
    for t in range(5):
        observation, normals = Observation(noisy[t]), rng.standard_normal(9)
        decision = rounds.decide(agent, setup, memory, features, observation, normals)
        memory = rounds.observe(agent, setup, memory, observation)
        memory, decision = rounds.reward(agent, setup, memory, decision, rewards[t])
        decisions.append(decision)
    for shift in (1.0, 0.0):
        for t, i in (divmod(int(n), 3) for n in rng.permutation(15)):
            told = (truths[t] + shift) * pieces[i]
            memory, decisions[t] = rounds.reveal(agent, setup, memory, decisions[t], told)
    rows = np.stack([features.at(c).row(d.arm) for c, d in zip(truths, decisions, strict=True)])
    precision = inverse(known.prior_cov) + rows.T @ rows / 0.7
    natural_mean = inverse(known.prior_cov) @ known.prior_mean + rows.T @ rewards / 0.7
    np.testing.assert_allclose(memory.learner.precision.value, precision, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(memory.learner.natural_mean.value, natural_mean, rtol=1e-10, atol=1e-10)
    gap = inverse(known.noise_cov) @ (noisy - truths).sum(0)
    np.testing.assert_allclose(memory.denoiser.natural_mean, gap, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(
    "shown",
    [{"missing": 0.3, "revealed": 0.6, "reveal_share": 0.5}, {"revealed": 0.3, "reveal": "every"}],
    ids=str,
)
def test_both_engines_show_the_same_contexts(shown: dict[str, Any]) -> None:
    problem = GaussianProblem(dim=D, actions=4, context_mean=1.0, **shown)
    rows = [row("late", Incomplete(pairs=True), Revisable())]
    settings: dict[str, Any] = {"rounds": 25, "trials": 4, "decompose": False}
    right = play(problem, rows, **settings).values["regret"]
    jax: dict[str, Any] = {"engine": "jax", "precision": "float64", **settings}
    found = play(problem, rows, draws="numpy", **jax).values["regret"]
    np.testing.assert_allclose(found, right, rtol=1e-8)


@pytest.mark.slow
def test_the_compiled_engine_draws_what_is_shown() -> None:
    """From a stream of its own on the device, nested over shares: at 1 all is as where nothing is drawn."""
    rows = [row("late", Incomplete(pairs=True), Revisable())]
    settings: dict[str, Any] = {"rounds": 40, "trials": 50, "decompose": False}
    fields: dict[str, Any] = {"dim": D, "actions": 4, "noise_cov": 3.0}
    none, nearly, every = [
        play(GaussianProblem(**fields, revealed=share), rows, engine=engine, **settings)
        for share, engine in ((0.0, "numpy"), (0.999_999, "jax"), (1.0, "jax"))
    ]
    np.testing.assert_allclose(nearly.values["regret"], every.values["regret"], rtol=1e-9)
    assert none.values["regret"][0, :, -1].mean() > every.values["regret"][0, :, -1].mean()


def test_agents_that_need_every_context_at_once_are_refused() -> None:
    with pytest.raises(InputError, match="'alg2' needs every true context at once"):
        play(clear(1.0, 3), ["alg2"], rounds=10, trials=2)


CORRELATED: dict[str, Any] = {
    "dim": 3,
    "actions": 10,
    "features": "product",
    "context_mean": [1.0, -1.0, 0.5],
    "context_cov": [[1.0, 0.7, 0.7], [0.7, 1.0, 0.7], [0.7, 0.7, 1.0]],
    "noise_cov": [0.2, 1.0, 3.0],
    "bias_cov": 2.0,
    "prior_cov": 0.1,
    "reward_var": 0.5,
}


SWAPPED: dict[str, Any] = {"noise_cov": [5.0, 0.1, 0.1], "assumed_noise_cov": CORRELATED["noise_cov"]}


@pytest.mark.parametrize(
    ("world", "ours"),
    [
        ({"missing": 0.3}, row("gaps", Incomplete(), Conjugate())),
        ({**SWAPPED, "revealed": 0.3}, row("unknown", UnknownNoise(), Revisable())),
    ],
    ids=["gaps", "unknown noise"],
)
@pytest.mark.slow
def test_to_know_of_it_pays(world: dict[str, Any], ours: Agent) -> None:
    """Paired differences of final regret, four standard errors from zero and more."""
    problem = GaussianProblem(**(CORRELATED | world))
    final = play(problem, ["alg1-exact", ours], rounds=200, trials=60, decompose=False).values["regret"][
        ..., -1
    ]
    gain = final[0] - final[1]
    assert gain.mean() > 4 * gain.std() / np.sqrt(len(gain))
