"""Every part there is, and every skeleton, keeps its contract."""

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unfog import testing
from unfog.agents import choose, denoise, learn
from unfog.agents.base import Chooser, Denoiser, Learner
from unfog.agents.catalogue import AGENTS
from unfog.features import quadrature
from unfog.features.registry import BUILT_IN
from unfog.lab.datasets.files import DatasetNotFoundError
from unfog.lab.spec import KINDS
from unfog.testing.common import TRIALS, problem, truth
from unfog.worlds import GaussianProblem, LogisticProblem
from unfog.worlds.problem import Problem

SKELETONS = Path(__file__).parents[2] / "docs" / "skeletons"
RNG = np.random.default_rng(7)
ACTIONS, MATRICES = RNG.standard_normal((4, 2)), RNG.standard_normal((4, 3, 2))


def parts(room: Any, *more: Any) -> list[Any]:
    """Everything a room exports, as it is unless told, and these, each once."""
    return list(dict.fromkeys([*(vars(room)[name]() for name in room.__all__), *more]))


DENOISERS: list[Denoiser] = parts(
    denoise,
    *(row.denoiser for row in AGENTS.values()),
    denoise.Drift(step=0.05, pairs=True),
    denoise.Robust(nu=4.0, step=0.01, pairs=True),
    denoise.UnknownNoise(pairs=False),
    denoise.Empirical(atoms=3, pairs=True),
    denoise.Empirical(bandwidth=0.0),
    denoise.Mixture(pairs=True),
)
LEARNERS: list[Learner] = parts(
    learn,
    *(row.learner for row in AGENTS.values()),
    *(row.binary_learner for row in AGENTS.values() if row.binary_learner is not None),
    learn.Hetero(surprise=True),
    learn.Revisable(hetero=False),
    learn.Sites(marginal=False),
    learn.Smoothing(hetero=False),
    learn.LMC(temperature=1.0, steps=3, marginal=True),
    learn.PG(sweeps=2),
    learn.Laplace(steps=2, marginal=True),
    learn.Laplace(steps=2),
)
CHOOSERS: list[Chooser] = parts(
    choose,
    choose.Ucb(growth=1.0),
    choose.Epsilon(epsilon=0.3, decay=0.5),
    choose.Ids(samples=10),
    choose.TopTwo(beta=0.6, redraws=2),
)
MAPS: dict[str, Any] = {
    **BUILT_IN,
    "quadrature": quadrature(lambda a, c: np.concatenate([a * c, np.sin(c) + 0 * a], -1), 2, 9),
}
NO_DATA: dict[str, Any] = {"movielens": {"ratings": "stand-in"}}  # fields with which a world needs no file


def recorded(folder: Path) -> dict[str, Any]:
    """Fields of a record of one's own."""
    rows = RNG.standard_normal((60, 2)).cumsum(0)
    lines = [f"{t},{true},{true + noise}" for t, (true, noise) in enumerate(rows)]
    (folder / "log.csv").write_text("\n".join(["t,x,a", *lines]), "utf-8")
    names = {"time": "t", "noisy": ["a"], "true": ["x"], "calibration": 30}
    return {"file": str(folder / "log.csv"), **names}


def skeleton(kind: str) -> Any:
    """The module of a skeleton, as someone else's would be: in a file of its own."""
    name = f"skeleton_{kind}"
    spec = spec_from_file_location(name, SKELETONS / f"{kind}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_denoisers() -> None:
    for part in DENOISERS:
        testing.check_denoiser(part)


def test_learners() -> None:
    for part in LEARNERS:
        fitting = (one for one in [denoise.Exact(), *DENOISERS] if not part.misses(one))
        testing.check_learner(part, next(fitting))


# Where learners meet what is not independent of them: features (most look at rows alone, some at the maps
# themselves), several covariances of the context, rounds that differ, and what denoisers tell them.
MEETING: list[tuple[Learner, dict[str, Any]]] = [
    (learn.Hetero(), {"features": "per_arm"}),  # a belief in blocks
    (learn.Revisable(), {"features": "per_arm", "dim": 3, "denoiser": denoise.KnownBias()}),
    (learn.Sites(), {"features": "per_arm"}),
    (learn.LMC(steps=3), {"features": "per_arm"}),  # a past that is kept for each arm
    (learn.Adf(marginal=True), {"features": "matrix", "actions": MATRICES}),
    (learn.Revisable(), {"features": "own", "dim": 6, "actions": 3, "context_mean": 0.5}),
    (learn.Hetero(), {"features": "own", "dim": 6, "actions": 3, "context_mean": 0.5}),
    (learn.Sites(), {"features": "product"}),
    (learn.Hetero(), {"dim": 1, "actions": 2}),
    (learn.LMC(steps=3), {"dim": 1, "actions": 2}),
    (learn.Revisable(), {"actions": ACTIONS}),  # all trials share them
    (learn.Hetero(), {"missing": 0.3}),
    (learn.Revisable(), {"denoiser": denoise.Incomplete(pairs=True), "missing": 0.3}),
    (learn.Sites(), {"denoiser": denoise.Incomplete(pairs=True), "missing": 0.3}),
    (learn.Adf(marginal=True), {"denoiser": denoise.Exact(pairs=True)}),  # contexts that are known
    (learn.LMC(steps=3), {"denoiser": denoise.Exact(pairs=True)}),
    (learn.Hetero(), {"denoiser": denoise.KnownBias(), "drift_cov": 0.1, "drift_rounds": 7}),
]


def test_learners_elsewhere() -> None:
    """On other problems, and beside other denoisers."""
    for part, told in MEETING:
        testing.check_learner(part, **told)


def test_the_truth_is_drawn_as_worlds_ask() -> None:
    """Uniforms where these are asked for, and those of a trial whichever others there are."""
    world = problem(action_law="uniform", actions=400, features="product")
    first = truth(world).features.at(np.ones((TRIALS, 2))).scores(np.array([1.0, 0.0]))  # of every action
    assert first.shape == (TRIALS, 400)
    assert np.abs(first).max() <= 1
    assert abs(first.mean()) < 4 * (1 / 3 / first.size) ** 0.5
    assert first.std() > 0.5
    for trial in range(TRIALS):
        whole, alone = truth(world), truth(world, slice(trial, trial + 1))
        np.testing.assert_array_equal(whole.theta[trial], alone.theta[0])


def test_choosers() -> None:
    for part in CHOOSERS:
        testing.check_chooser(part)


def test_feature_maps() -> None:
    for name, build in MAPS.items():
        actions = {"matrix": MATRICES, "own": ACTIONS[:2]}.get(name, ACTIONS)  # d is a multiple of K there
        testing.check_feature_map(build, actions, dim=2)


ODD: list[dict[str, Any]] = [
    {},
    {"missing": 0.3},
    {"drift_cov": 0.1, "drift_rounds": 7},
    {"tails": 4},
    {"assumed_noise_cov": 2.0},
    {"revealed": 0.5, "reveal_delay": 2},
    {"features": "per_arm"},
]


@pytest.mark.parametrize("kind", KINDS)
def test_worlds_of_specs(kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = Path(__file__).parents[3] / "shared" / "data"
    if "UNFOG_DATA" not in os.environ and folder.is_dir():
        monkeypatch.setenv("UNFOG_DATA", str(folder))
    try:
        world: Problem = KINDS[kind](**(recorded(tmp_path) if kind == "recorded" else NO_DATA.get(kind, {})))
        world.knowledge()
    except DatasetNotFoundError:
        pytest.skip(f"{kind} needs data")
    testing.check_world(world)


def test_worlds() -> None:
    """What is odd about a channel has nothing to do with rewards."""
    for odd in ODD:
        testing.check_world(GaussianProblem(dim=2, actions=4, context_mean=[0.5, -1.0], **odd))
    testing.check_world(LogisticProblem(dim=2, actions=4, context_mean=[0.5, -1.0], **ODD[-2]))


def test_skeletons() -> None:
    testing.check_denoiser(skeleton("denoiser").Skeleton())
    testing.check_learner(skeleton("learner").Skeleton())
    testing.check_chooser(skeleton("chooser").Skeleton())
    testing.check_feature_map(skeleton("feature_map").skeleton, ACTIONS, dim=2)
    testing.check_world(skeleton("world").Skeleton(missing=0.2))
