"""Denoisers where one coordinate is read exactly, nearly so, or says nothing: beliefs are right."""

import numpy as np

from tests.each import each
from unfog.agents import round as rounds
from unfog.agents.base import PoolsUnits, Privilege
from unfog.agents.catalogue import AGENTS
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths.arrays import Array

MEAN, CONTEXT_COV = np.array([1.0, -2.0]), np.array([[2.0, 0.3], [0.3, 1.0]])
READING = np.array([[3.0, -2.5]])
SHARES = (0.0, 1e-16, 1e16)  # of the variance of the context
BEYOND = {"contexts", "sample", "mixture"}
ROWS = [
    row
    for row in AGENTS.values()
    if not BEYOND & {*row.denoiser.needs_knowledge} and not isinstance(row.denoiser, PoolsUnits)
]


def known(share: float) -> Knowledge:
    noise_cov = np.diag([share * CONTEXT_COV[0, 0], 0.8])
    bias_cov = np.diag([min(share, 1.0) * 0.3, 0.4])  # an exact coordinate has no bias, either
    return Knowledge(MEAN, CONTEXT_COV, noise_cov, bias_cov, np.zeros(2), np.eye(2), np.asarray(1.0))


def first_belief(name: str, share: float) -> Context:
    agent = AGENTS[name]
    privilege = None if agent.can.see_bias is None else Privilege(np.zeros((1, 2)))
    setup, memory = rounds.start(agent, known(share), privilege)
    return agent.denoiser.predict(setup.denoiser, memory.denoiser, READING)


def conditioned(share: float) -> Array:
    """The mean of the context given the reading, by brute force; a useless coordinate is left out."""
    knowledge = known(share)
    read = [1] if share > 1 else [0, 1]
    noisy_cov = (CONTEXT_COV + knowledge.noise_cov + knowledge.bias_cov)[np.ix_(read, read)]
    return MEAN + CONTEXT_COV[:, read] @ np.linalg.solve(noisy_cov, (READING[0] - MEAN)[read])


@each("row", ROWS)
@each("share", SHARES)
def test_beliefs_are_finite_and_right(row: object, share: float) -> None:
    name = row.name  # type: ignore[attr-defined]
    belief = first_belief(name, share)
    assert np.isfinite(belief.mean).all()
    assert np.isfinite(belief.cov).all()
    variances = np.diagonal(belief.cov, axis1=-2, axis2=-1)
    assert (variances >= 0).all()
    if name == "kk":  # looks at no reading
        return
    if share < 1:
        np.testing.assert_allclose(belief.mean[0, 0], READING[0, 0], rtol=1e-6)
        assert variances[..., 0].max() < 1e-8
    if name in ("unfog", "unfog-delayed", "gaps", "late", "drift", "coupled"):
        np.testing.assert_allclose(belief.mean[0], conditioned(share), atol=1e-6)
