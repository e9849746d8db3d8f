"""True contexts that come late, in part, or never: when the engine hands them over, and what comes of it."""

from typing import Any, NamedTuple, cast

import numpy as np
import pytest
from unfog.agents.agent import Agent

from tests.problems import inverse, random_problem
from unfog.agents import agent as agents
from unfog.agents.choose import thompson
from unfog.agents.denoise import exact
from unfog.agents.denoise import incomplete as records
from unfog.agents.denoise.unknown_noise import UnknownNoise
from unfog.agents.learn import conjugate
from unfog.agents.learn.revisable import Ledger
from unfog.features import Context
from unfog.features.quadratic import quadratic
from unfog.inputs import InputError
from unfog.maths.arrays import Array
from unfog.model.knowledge import Knowledge
from unfog.simulate import simulate
from unfog.worlds.gaussian import GaussianProblem

D = 2


class Message(NamedTuple):
    """A true context handed over."""

    after: int  # rounds taken in by then
    noisy: Array
    before: Array
    context: Array


class Logger:
    """A denoiser that keeps all it is told."""

    def __init__(self) -> None:
        self.noisy: list[Array] = []
        self.messages: list[Message] = []
        self.state: Any = None

    def setup(self, known: Knowledge, privilege: Any) -> records.Parameters:
        return records.setup(known, privilege)

    def start(self, parameters: records.Parameters) -> records.State:
        return records.start(parameters)

    def predict(self, parameters: Any, state: Any, noisy: Array) -> Context:
        return records.predict(parameters, state, noisy)

    def update(self, parameters: Any, state: Any, noisy: Array, revealed: Array | None) -> Any:
        self.noisy.append(noisy)
        self.state = records.update(parameters, state, noisy, revealed)
        return self.state

    def amend(
        self, parameters: Any, state: Any, noisy: Array, before: Array, after: Array
    ) -> tuple[Any, Context]:
        self.messages.append(Message(len(self.noisy), noisy, before, after))
        self.state, context = records.amend(parameters, state, noisy, before, after)
        return self.state, context


def row(name: str, denoiser: Any, learner: Any, reveals: bool = True) -> Agent:
    return Agent(name, denoiser, learner, thompson, name, "a test", reveals=reveals)


def clear(revealed: float, late: int) -> GaussianProblem:
    """A channel so clear that the context can be read off the measurement."""
    return GaussianProblem(
        dim=D, actions=3, noise_cov=1e-12, bias_cov=1e-12, context_mean=1.0, revealed=revealed, late=late
    )


@pytest.mark.parametrize("late", [0, 1, 50, 128])
def test_a_context_comes_as_many_rounds_later_as_told(late: int) -> None:
    log = Logger()
    simulate(clear(0.5, late), [row("log", log, Ledger())], rounds=140, trials=6, decompose=False)
    assert len(log.noisy) == 140
    assert [message.after for message in log.messages] == list(range(late + 1, 141))
    for t, (_, noisy, before, context) in enumerate(log.messages):
        assert np.array_equal(noisy, log.noisy[t])
        assert np.isnan(before).all()
        shown = ~np.isnan(context)
        assert np.array_equal(shown.any(-1), shown.all(-1))
        np.testing.assert_allclose(context[shown], noisy[shown], atol=1e-4)


@pytest.mark.parametrize("revealed", [0.0, 0.2, 0.7, 1.0])
def test_as_many_contexts_come_as_told(revealed: float) -> None:
    """Within five standard errors: wrong once in a million runs."""
    log = Logger()
    simulate(clear(revealed, 3), [row("log", log, Ledger())], rounds=203, trials=40, decompose=False)
    shown = np.stack([~np.isnan(message.context[:, 0]) for message in log.messages])
    assert shown.shape == (200, 40)
    assert abs(shown.mean() - revealed) <= 5 * np.sqrt(revealed * (1 - revealed) / shown.size)
    assert revealed in (0, 1) or (shown.any(0) & ~shown.all(0)).all()


def test_agents_that_are_not_shown_contexts_are_not() -> None:
    log = Logger()
    simulate(clear(0.5, 2), [row("log", log, Ledger(), reveals=False)], rounds=20, trials=3, decompose=False)
    assert log.messages == []


def test_after_a_run_the_belief_is_that_of_all_it_was_told() -> None:
    log, problem = Logger(), GaussianProblem(dim=D, actions=3, context_mean=1.0, revealed=0.4, late=7)
    simulate(problem, [row("log", log, Ledger())], rounds=60, trials=5, decompose=False)
    parameters = records.setup(problem.knowledge(), None)
    state = records.start(parameters)
    told = [message.context for message in log.messages] + [np.full((5, D), np.nan)] * 7
    for noisy, context in zip(log.noisy, told, strict=True):
        state = records.update(parameters, state, noisy, context)
    for found, right in zip(log.state, state, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-11, atol=1e-11)


class Greedy:
    """A chooser that does not hang on which root of a covariance a learner keeps."""

    def normals(self, _: Knowledge) -> int:
        return 0

    def choose(self, design: Any, belief: Any, *_: Any) -> Any:
        return design.scores(belief.mean).argmax(-1)


@pytest.mark.parametrize("reveals", [True, False])
def test_shown_everything_at_once_or_nothing_it_is_exact(reveals: bool) -> None:
    plain = exact.from_pairs if reveals else exact.from_noisy
    parts = {
        "exact": (plain, conjugate),
        "late": (records, Ledger(hetero=False)),
        "both": (records, conjugate),
    }
    rows = [row(name, *two, reveals)._replace(chooser=cast(Any, Greedy())) for name, two in parts.items()]
    regret = simulate(random_problem(seed=3), rows, rounds=150, trials=8).values["regret"]
    assert regret[0, :, -1].mean() > 1
    np.testing.assert_allclose(regret[1], regret[0], rtol=1e-8)
    np.testing.assert_allclose(regret[2], regret[0], rtol=1e-8)


def test_a_context_in_pieces_or_corrected_is_the_context_at_once(rng: np.random.Generator) -> None:
    """Whatever was said of the contexts meanwhile, in any order: only what stands in the end counts."""
    agent, problem = row("late", records, Ledger()), random_problem(seed=8)
    known, features = problem.knowledge(), quadratic(rng.normal(size=(6, 3)))
    setup, memory = agents.begin(agent, known)
    noisy, truths, rewards = rng.normal(size=(5, 3)), rng.normal(size=(5, 3)), rng.normal(size=5)
    decisions, pieces = [], np.where(np.eye(3) > 0, 1.0, np.nan)
    for t in range(5):
        decision = agents.decide(agent, setup, memory, features, noisy[t], rng.standard_normal(9))
        decisions.append(decision)
        memory = agents.learn(agent, setup, memory, features, decision, noisy[t], rewards[t], None)
    for shift in (1.0, 0.0):
        for t, i in (divmod(int(n), 3) for n in rng.permutation(15)):
            told = (truths[t] + shift) * pieces[i]
            memory, decisions[t] = agents.amend(
                agent, setup, memory, features, decisions[t], noisy[t], rewards[t], told
            )
    rows = np.stack([features.at(c).row(d.arm) for c, d in zip(truths, decisions, strict=True)])
    precision = inverse(known.prior_cov) + rows.T @ rows / 0.7
    pull = inverse(known.prior_cov) @ known.prior_mean + rows.T @ rewards / 0.7
    np.testing.assert_allclose(memory.learner.precision.value, precision, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(memory.learner.pull.value, pull, rtol=1e-10, atol=1e-10)
    gap = inverse(known.noise_cov) @ (noisy - truths).sum(0)
    np.testing.assert_allclose(memory.denoiser.pull, gap, rtol=1e-10, atol=1e-10)


def test_both_engines_agree() -> None:
    problem = GaussianProblem(dim=D, actions=4, context_mean=1.0, missing=0.3)
    rows = [row("late", records, Ledger())]
    settings: dict[str, Any] = {"rounds": 30, "trials": 5, "decompose": False}
    right = simulate(problem, rows, **settings).values["regret"]
    found = simulate(problem, rows, engine="jax", draws="numpy", precision="float64", **settings).values[
        "regret"
    ]
    np.testing.assert_allclose(found, right, rtol=1e-8)


def test_agents_that_need_every_context_at_once_are_refused() -> None:
    with pytest.raises(InputError, match="'alg2' needs every true context at once"):
        simulate(clear(1.0, 3), ["alg2"], rounds=10, trials=2)


CORRELATED: dict[str, Any] = {
    "dim": 3,
    "actions": 10,
    "features": "linear",
    "context_mean": [1.0, -1.0, 0.5],
    "context_cov": [[1.0, 0.7, 0.7], [0.7, 1.0, 0.7], [0.7, 0.7, 1.0]],
    "noise_cov": [0.2, 1.0, 3.0],
    "bias_cov": 2.0,
    "prior_cov": 0.1,
    "reward_var": 0.5,
}


@pytest.mark.parametrize(
    ("world", "ours"),
    [
        ({"missing": 0.3}, row("gaps", records, conjugate, reveals=False)),
        ({"actual_noise_cov": [5.0, 0.1, 0.1], "revealed": 0.3}, row("unknown", UnknownNoise(), Ledger())),
    ],
    ids=["gaps", "unknown noise"],
)
def test_to_know_of_it_pays(world: dict[str, Any], ours: Agent) -> None:
    """Paired differences of final regret, four standard errors from zero and more."""
    problem = GaussianProblem(**CORRELATED, **world)
    final = simulate(problem, ["alg1-exact", ours], rounds=200, trials=60, decompose=False).values["regret"][
        ..., -1
    ]
    gain = final[0] - final[1]
    assert gain.mean() > 4 * gain.std() / np.sqrt(len(gain))
