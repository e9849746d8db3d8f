"""Every part there is, and every skeleton, keeps its contract."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unfog import testing
from unfog.agents import choose, denoise, learn
from unfog.agents.catalogue import AGENTS
from unfog.agents.parts import Chooser, Denoiser, Learner
from unfog.features import matrix, per_arm, product, quadratic, quadrature
from unfog.worlds import GaussianProblem, LogisticProblem

SKELETONS = Path(__file__).parents[2] / "docs" / "skeletons"
RNG = np.random.default_rng(7)
ACTIONS = RNG.standard_normal((4, 2))

DENOISERS: list[Denoiser] = [
    *{row.denoiser for row in AGENTS.values()},
    denoise.Drift(step=0.05, pairs=True),
    denoise.Robust(nu=4.0, step=0.01, pairs=True),
    denoise.UnknownNoise(pairs=False),
]
LEARNERS: list[Learner] = [
    *{row.learner for row in AGENTS.values()},
    *{row.binary for row in AGENTS.values() if row.binary is not None},
    learn.Hetero(surprise=True),
    learn.Revisable(hetero=False),
    learn.Smoothing(),
    learn.Smoothing(hetero=False),
    learn.Joint(),
    learn.LMC(temperature=1.0, steps=3, marginal=True),
    learn.PG(sweeps=2),
    learn.Laplace(steps=2, marginal=True),
    learn.Laplace(steps=2),
]
CHOOSERS: list[Chooser] = [
    choose.Thompson(),
    choose.Ucb(),
    choose.Ucb(growth=1.0),
    choose.Greedy(),
    choose.Epsilon(epsilon=0.3, decay=0.5),
    choose.Ids(),
    choose.Ids(samples=10),
    choose.TopTwo(beta=0.6, redraws=2),
]
MAPS: dict[str, Any] = {
    "quadratic": (quadratic, ACTIONS),
    "product": (product, ACTIONS),
    "per_arm": (per_arm, ACTIONS),
    "matrix": (matrix, RNG.standard_normal((4, 3, 2))),
    "quadrature": (quadrature(lambda a, c: np.concatenate([a * c, np.sin(c) + 0 * a], -1), 2, 9), ACTIONS),
}


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


@pytest.mark.parametrize("part", DENOISERS, ids=repr)
def test_denoisers(part: Denoiser) -> None:
    testing.check_denoiser(part)


@pytest.mark.parametrize("part", LEARNERS, ids=repr)
def test_learners(part: Learner) -> None:
    testing.check_learner(part)


@pytest.mark.parametrize("part", CHOOSERS, ids=repr)
def test_choosers(part: Chooser) -> None:
    testing.check_chooser(part)


@pytest.mark.parametrize("name", MAPS)
def test_feature_maps(name: str) -> None:
    build, actions = MAPS[name]
    testing.check_feature_map(build, actions, dim=2)


ODD: list[dict[str, Any]] = [
    {},
    {"missing": 0.3},
    {"drift_cov": 0.1, "drift_rounds": 7},
    {"tails": 4},
    {"actual_noise_cov": 2.0},
    {"revealed": 0.5, "late": 2},
    {"features": "per_arm"},
]


@pytest.mark.parametrize("odd", ODD, ids=str)
@pytest.mark.parametrize("kind", [GaussianProblem, LogisticProblem])
def test_worlds(kind: Any, odd: dict[str, Any]) -> None:
    testing.check_world(kind(dim=2, actions=4, context_mean=[0.5, -1.0], **odd))


def test_skeletons() -> None:
    testing.check_denoiser(skeleton("denoiser").Skeleton())
    testing.check_learner(skeleton("learner").Skeleton())
    testing.check_chooser(skeleton("chooser").Skeleton())
    testing.check_feature_map(skeleton("feature_map").skeleton, ACTIONS, dim=2)
    testing.check_world(skeleton("world").Skeleton(missing=0.2))
