"""Denoising over a sample of contexts with the bias known, against Bayes' rule written out."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from tests.agents.denoise.stories import D, Story
from unfog.agents.base import Privilege
from unfog.agents.catalogue import AGENTS, Catalogue, playable
from unfog.agents.denoise import KnownBiasAtoms
from unfog.channel.knowledge import BEYOND, Knowledge
from unfog.simulation import play
from unfog.validation import InputError
from unfog.worlds.problem import Problem
from unfog.worlds.synthetic import GaussianProblem, LogisticProblem

SAMPLE = np.random.default_rng(6).gamma(1.5, 1.0, (9, D)) @ np.array([[1, 0.7, 0], [0, 1, -0.4], [0, 0, 1]])


def test_the_posterior_is_bayes_rule_over_the_sample(known: Knowledge) -> None:
    story = Story(known._replace(contexts=SAMPLE), 6)
    spread = 0.0
    for noisy, belief in zip(
        story.noisy, story.beliefs(KnownBiasAtoms(), Privilege(story.bias)), strict=True
    ):
        chance = [multivariate_normal.pdf(noisy, atom + story.bias, known.noise_cov) for atom in SAMPLE]
        weights = np.array(chance) / sum(chance)
        mean = sum(w * atom for w, atom in zip(weights, SAMPLE, strict=True))
        cov = sum(w * np.outer(atom - mean, atom - mean) for w, atom in zip(weights, SAMPLE, strict=True))
        np.testing.assert_allclose(belief.mean, mean, rtol=1e-9)
        np.testing.assert_allclose(belief.cov, cov, rtol=1e-8, atol=1e-10)
        spread = max(spread, 1 - weights.max())
    assert spread > 0.2  # a sample on which the formula can fail


def test_the_bias_of_a_round_replaces_that_of_all(known: Knowledge) -> None:
    denoiser, noisy = KnownBiasAtoms(), np.ones((1, D))
    told = known._replace(contexts=SAMPLE)
    plain = denoiser.setup(told, Privilege(np.full(D, 0.3)))
    moved = denoiser.with_bias(denoiser.setup(told, Privilege(np.zeros(D))), np.full(D, 0.3))
    assert np.array_equal(denoiser.predict(moved, (), noisy).mean, denoiser.predict(plain, (), noisy).mean)


def test_it_cannot_go_without_what_it_is_told(known: Knowledge) -> None:
    for told, privilege in ((known, Privilege(np.zeros(D))), (known._replace(contexts=SAMPLE), None)):
        with pytest.raises(ValueError, match="known_bias_atoms must be shown the bias, and a sample"):
            KnownBiasAtoms().setup(told, privilege)


@pytest.mark.parametrize("problem", [GaussianProblem(dim=2), LogisticProblem(dim=2)])
def test_the_row_is_refused_where_there_is_no_sample(problem: Problem) -> None:
    with pytest.raises(InputError) as refused:
        play(problem, ["unfog", "bayes-oracle"], rounds=2, trials=2)
    line = "agents: 'bayes-oracle' needs a sample of contexts, and this world has none; allowed: agents that"
    assert str(refused.value).startswith(line)
    assert "\n" not in str(refused.value)
    with pytest.raises(InputError) as unknown:
        play(problem, ["nobody"], rounds=2, trials=2)
    assert "`unfog list agents`" in str(unknown.value)
    assert "bayes-oracle" not in str(unknown.value)


def test_lists_name_it_where_it_can_play() -> None:
    assert playable(BEYOND) == list(AGENTS) == list(Catalogue())
    assert {*AGENTS} - {*playable()} == {"bayes-oracle", "empirical", "mixture"}
    assert {*AGENTS} - {*playable(("contexts", "sample"))} == {"mixture"}
    assert list(Catalogue(knowledge=())) == playable()
    assert len(Catalogue(knowledge=())) == len(AGENTS) - 3
    assert Catalogue(knowledge=())["bayes-oracle"] is AGENTS["bayes-oracle"]
    assert AGENTS["bayes-oracle"].learner == AGENTS["unfog-oracle"].learner
    assert AGENTS["bayes-oracle"].chooser == AGENTS["unfog-oracle"].chooser
