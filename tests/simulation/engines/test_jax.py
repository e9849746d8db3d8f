"""The compiled engine: the NumPy engine's numbers on its draws, and the same law on its own."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

from tests.problems import random_problem
from unfog.agents.catalogue import AGENTS, playable
from unfog.agents.learn import Conjugate
from unfog.features.quadrature import quadrature
from unfog.simulation import Curves, Plan, plan, play
from unfog.simulation.engines import jax as jax_engine
from unfog.simulation.engines.jax import Program
from unfog.simulation.plan import CURVES
from unfog.theory.regret import names
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem

pytestmark = pytest.mark.slow  # every program is compiled

EVERY = [name for name in playable() if name != "hedged"]  # which NumPy alone plays
SOME = ["alg1", "alg2", "oracle", "kk", "late"]  # of every kind: each takes seconds to compile
PROBLEM = random_problem(seed=12, dim=3, actions=5)


def waves(action: Any, context: Any) -> Any:
    xp = context.__array_namespace__()
    return xp.concat([xp.sin(action * context), xp.cos(action + context)], axis=-1)


PROBLEMS = {
    "quadratic": PROBLEM,
    "product": GaussianProblem(
        dim=2, actions=4, features="product", noise_cov=[[1, 0.4], [0.4, 2]], action_law="uniform"
    ),
    "any function": GaussianProblem(dim=2, actions=3, features=quadrature(waves, 2), context_mean=[0.5, -1]),
    "fixed actions": GaussianProblem(dim=2, actions=np.array([[1.0, -0.5], [0.3, 2.0]]), context_mean=1.0),
}


def run(problem: GaussianProblem = PROBLEM, agents: Any = SOME, **settings: Any) -> Curves:
    return play(problem, agents, **{"rounds": 60, "trials": 5, "seed": 3} | settings)


@pytest.mark.parametrize("name", EVERY)
def test_every_row_of_the_catalogue_agrees_on_both_engines(name: str) -> None:
    split = name in SOME  # what regret is made of takes long to compile
    numpy = run(agents=[name], rounds=200, decompose=split)
    jax = run(agents=[name], rounds=200, decompose=split, engine="jax", draws="numpy")
    assert tuple(jax.values) == tuple(numpy.values) == names(split)
    for loss, values in numpy.values.items():
        np.testing.assert_allclose(jax.values[loss], values, rtol=1e-9, atol=1e-9, err_msg=loss)


class Traced(Exception):  # noqa: N818
    """A round was prepared for: there is no need to compile it."""


SOAKED = ("coupled", "gaps", "unknown-noise", "robust")


@pytest.mark.parametrize(
    "name", ["unfog", "late", *(pytest.param(name, marks=pytest.mark.soak) for name in SOAKED)]
)
def test_no_round_calls_lapack(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # On a GPU a call takes far longer than the work: for 5 x 5 matrices, and 15 x 15 ones of theta.
    def refused(*given: Any, **settings: Any) -> Any:
        raise AssertionError("a matrix went to LAPACK")

    def traced(*given: Any) -> Any:
        raise Traced

    for call in ("inv", "solve", "cholesky", "eigh", "slogdet", "qr"):
        monkeypatch.setattr(jnp.linalg, call, refused)
    monkeypatch.setattr(Program, "_advance", traced)
    monkeypatch.setattr(jax_engine, "platform", lambda: "gpu")
    with pytest.raises(Traced):
        run(GaussianProblem(dim=5, actions=3), [name], engine="jax")


@pytest.mark.parametrize("kind", PROBLEMS)
def test_every_feature_map_agrees_on_both_engines(kind: str) -> None:
    # Its choices take features of contexts that it believes, and its updates those of contexts that it sees.
    numpy = run(PROBLEMS[kind], ["alg2"])
    jax = run(PROBLEMS[kind], ["alg2"], engine="jax", draws="numpy")
    for loss, values in numpy.values.items():
        np.testing.assert_allclose(jax.values[loss], values, rtol=1e-9, atol=1e-9, err_msg=loss)


@pytest.mark.parametrize(
    "agents",
    [["alg2", "late"], pytest.param([*SOME, "unfog", "robust", "unknown-noise"], marks=pytest.mark.soak)],
)
def test_the_layout_for_gpus_gives_the_same_numbers(
    agents: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the draws of NumPy those of its engine, and on its own those of the other layout."""
    straight, own = run(agents=agents), run(agents=["alg1"], engine="jax", precision="float64")
    monkeypatch.setattr(jax_engine, "platform", lambda: "gpu")
    turned = run(agents=agents, engine="jax", draws="numpy", precision="float64")
    other = run(agents=["alg1"], engine="jax", precision="float64")
    for one, two in ((straight, turned), (own, other)):
        for loss, values in one.values.items():
            np.testing.assert_allclose(two.values[loss], values, rtol=1e-9, atol=1e-9)


def test_on_its_own_draws_it_has_the_same_law() -> None:
    # A z test of each agent's mean final regret at level 1e-3, Bonferroni over 3.
    agents = ["alg1", "alg2", "naive"]
    both = [
        run(agents=agents, trials=800, engine=engine, decompose=False).values["regret"][:, :, -1]
        for engine in ("numpy", "jax")
    ]
    gap = both[0].mean(1) - both[1].mean(1)
    assert np.all(np.abs(gap) < 3.6 * np.sqrt((both[0].var(1) + both[1].var(1)) / 800))


def test_batches_and_company_do_not_change_a_trial() -> None:
    whole, cut = (run(agents=["alg1", "alg2"], engine="jax", chunk=chunk) for chunk in (None, 2))
    alone = run(agents=["alg2"], engine="jax")
    for loss, values in whole.values.items():
        np.testing.assert_allclose(cut.values[loss], values, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(alone.values[loss][0], values[1], rtol=1e-9, atol=1e-9)


def test_seeds_decide() -> None:
    finals = [run(agents=["alg1"], engine="jax", seed=seed).values["regret"] for seed in (0, 0, 1, 2**40)]
    assert np.array_equal(finals[0], finals[1])
    assert not np.any(finals[0][..., -1] == finals[2][..., -1])
    assert not np.any(finals[0][..., -1] == finals[3][..., -1])


def test_thinned_and_plain_runs_are_parts_of_the_whole() -> None:
    full = run(agents=["alg1"], engine="jax")
    thin = run(agents=["alg1"], engine="jax", points=7, decompose=False)
    assert list(thin.values) == ["regret"]
    np.testing.assert_allclose(
        thin.values["regret"], full.values["regret"][:, :, thin.rounds - 1], rtol=1e-12
    )


def test_float32_changes_regret_by_less_than_its_error() -> None:
    # Paired on the same draws: the mean difference stays within 4 of its standard errors, and below 1 %.
    settings: Any = {"agents": ["alg1"], "trials": 300, "rounds": 200, "decompose": False}
    single = run(**settings, engine="jax", precision="float32", draws="numpy").values["regret"]
    double = run(**settings).values["regret"]
    assert single.dtype == np.float64  # results are, whatever the maths
    assert jnp.zeros(1).dtype == np.float64  # as the suite set it, whatever the engine did meanwhile
    gap = (single - double)[0, :, -1]
    assert np.abs(gap).max() > 0
    assert abs(gap.mean()) < 4 * gap.std(ddof=1) / np.sqrt(300)
    assert abs(gap.mean()) < 0.01 * double[0, :, -1].mean()


def test_one_program_serves_every_horizon_and_seed() -> None:
    cache: Any = jax_engine._program
    cache.cache_clear()
    for rounds, seed in ((40, 0), (90, 1), (61, 2)):
        run(agents=["alg1"], engine="jax", rounds=rounds, seed=seed, points=1)
    program = jax_engine._program(PROBLEM, AGENTS["alg1"], True, False, "float64", False, None)
    assert program.begin._cache_size() == program.advance._cache_size() == 1
    run(agents=["alg1"], engine="jax", trials=6, points=1)
    assert program.advance._cache_size() == 2


CHILD = """
import json, jax
hits = []
jax.monitoring.register_event_listener(lambda name, **_: hits.append(name))
from unfog.simulation import play
from unfog.worlds.synthetic import GaussianProblem
curves = play(GaussianProblem(dim=2, actions=3), ["alg1", "oracle"], **RUN)
stored = hits.count("/jax/compilation_cache/cache_hits")
print(json.dumps([len(jax.devices()), stored, curves.values["regret"][:, :, -1].tolist()]))
"""
CHILD_RUN: dict[str, Any] = {"rounds": 30, "trials": 7, "engine": "jax", "decompose": False}


def child(home: Path) -> Any:
    """A run in a process with three devices, which keeps its programs in a folder."""
    flags = "--xla_force_host_platform_device_count=3"
    env = {**os.environ, "XDG_CACHE_HOME": str(home), "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", CHILD.replace("RUN", repr(CHILD_RUN))]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_compiled_programs_are_kept_between_processes_and_trials_spread_over_devices(tmp_path: Path) -> None:
    first, again = child(tmp_path), child(tmp_path)
    assert first[:2] == [3, 0]
    assert again[1] >= 2  # the loops of two agents; what compiles in a blink is not worth keeping
    assert first[2] == again[2]
    alone = play(GaussianProblem(dim=2, actions=3), ["alg1", "oracle"], **CHILD_RUN)
    np.testing.assert_allclose(first[2], alone.values["regret"][:, :, -1], rtol=1e-9)


@pytest.mark.parametrize("engine", ["numpy", "jax"])
def test_very_many_trials_are_kept_as_moments(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    full = run(agents=["alg1", "kk"], trials=11)
    assert len(full.curve) == 0
    monkeypatch.setattr(import_module("unfog.simulation.plan"), "MOST_CELLS", CURVES * 11 * 2 * 2)
    kept = run(agents=["alg1", "kk"], trials=11, engine=engine, draws="numpy", chunk=4)
    assert list(kept.rounds) == [30, 45, 60]
    assert np.array_equal(kept.curve, full.rounds)
    for loss, values in full.values.items():
        np.testing.assert_allclose(kept.values[loss], values[:, :, [29, 44, 59]], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(kept.mean[loss], values.mean(1), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(kept.se[loss], values.std(1, ddof=1) / np.sqrt(11), rtol=1e-7, atol=1e-9)


def test_a_million_trials_keep_memory_bounded() -> None:
    work = work_of(10**6, "jax")
    job, parts = work.jobs[0], work.batches[0]
    assert 8 * CURVES * len(job.grid) * 10**6 <= 2**29
    assert len(job.curve) == 1000
    assert sum(map(len, parts)) == 10**6
    assert len({len(part) for part in parts[:-1]}) == 1
    assert max(map(len, parts)) <= 4096


def work_of(trials: int, engine: str) -> Plan:
    return plan([GaussianProblem()], ["alg1"], rounds=1000, trials=trials, seed=0, engine=engine)


def test_odd_settings_are_refused_by_name() -> None:
    for field, value in (("engine", "torch"), ("precision", "float16"), ("draws", "paper")):
        settings: Any = {"engine": "jax", field: value}
        with pytest.raises(InputError, match=rf"^{field}: '{value}'.*; allowed: "):
            run(**settings)
    with pytest.raises(InputError, match=r"^precision: float32; allowed: float64 on the numpy engine"):
        run(precision="float32")


def test_a_function_that_cannot_be_compiled_is_refused_with_advice() -> None:
    plain = GaussianProblem(
        dim=2, actions=3, features=quadrature(lambda a, c: np.sin(np.asarray(a) * np.asarray(c)), 2)
    )
    run(plain, ["alg1"], rounds=3)
    told = r"^engine: jax cannot compile 'alg1' on this problem .*; allowed: numpy, or functions"
    with pytest.raises(InputError, match=told):
        run(plain, ["alg1"], rounds=3, engine="jax")
    mine = replace(AGENTS["alg1"], name="mine", learner=Plain())
    with pytest.raises(InputError, match=r"^engine: jax cannot compile 'mine' on this problem"):
        run(agents=["alg1", mine], rounds=3, engine="jax")


@dataclass(frozen=True, kw_only=True)
class Plain(Conjugate):
    """A learner that knows NumPy alone."""

    def update(self, parameters: Any, state: Any, evidence: Any, reward: Any) -> Any:
        return super().update(parameters, state, evidence, np.asarray(reward))


class Counted(NamedTuple):
    """What a learner knows, and how many rewards there were."""

    belief: Any
    count: Any
    any: Any


@dataclass(frozen=True, kw_only=True)
class Counting(Conjugate):
    """A learner that counts in whole numbers, and takes every other reward."""

    def start(self, known: Any, rounds: Any = None) -> Any:
        return Counted(super().start(known, rounds), np.zeros((), np.int32), np.zeros((), np.bool_))

    def belief(self, parameters: Any, state: Any) -> Any:
        return super().belief(parameters, state.belief)

    def update(self, parameters: Any, state: Any, evidence: Any, reward: Any) -> Any:
        odd = (state.count & 1) == 1  # fractions have no bits
        belief = super().update(parameters, state.belief, evidence, reward * (odd | state.any))
        return Counted(belief, state.count + 1, state.any & odd)


def test_whole_numbers_and_truth_values_of_a_state_stay_what_they_are() -> None:
    mine = replace(AGENTS["alg1"], name="mine", learner=Counting())
    numpy, jax = (run(agents=[mine], engine=e, draws="numpy").values["regret"] for e in ("numpy", "jax"))
    np.testing.assert_allclose(jax, numpy, rtol=1e-9, atol=1e-9)


def test_what_is_left_of_a_job_runs_in_the_batch_of_the_whole() -> None:
    work = plan([PROBLEM], ["alg1"], rounds=30, trials=7, seed=0, engine="jax", chunk=4)
    [job], [_, last] = work.jobs, work.pieces
    assert [len(piece.trials) for piece in work.pieces] == [4, 3]
    found = [
        part
        for some in (work.pieces, [last])
        for task, parts in work.results(some, lambda _: None)
        for piece, part in zip(task, parts, strict=True)
        if piece == last
    ]
    assert len(found) == 2
    assert np.array_equal(found[0]["regret"], found[1]["regret"])
    assert job.batch == 4


@dataclass(frozen=True, kw_only=True)
class Scaled(Conjugate):
    """A learner with a setting."""

    name = "scaled"
    scale: float = 1.0

    def update(self, parameters: Any, state: Any, evidence: Any, reward: Any) -> Any:
        return super().update(parameters, state, evidence, self.scale * reward)


def test_agents_of_ones_own_are_values_compiled_once_each() -> None:
    cache: Any = jax_engine._program
    cache.cache_clear()
    for scale in (1.0, 0.3, 1.0):
        mine = replace(AGENTS["alg1"], name="mine", learner=Scaled(scale=scale))
        numpy, jax = (run(agents=[mine], engine=e, draws="numpy").values["regret"] for e in ("numpy", "jax"))
        np.testing.assert_allclose(jax, numpy, rtol=1e-9, atol=1e-9)
    assert cache.cache_info().misses == 2
