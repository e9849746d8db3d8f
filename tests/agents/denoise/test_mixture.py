"""Denoising over a sample of contexts, the bias unknown: against enumeration, and grids over the bias."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from tests.agents.denoise.stories import D, Story, same
from tests.problems import given, spd
from unfog.agents.denoise import Empirical, Exact, Mixture
from unfog.agents.denoise.mixture import State
from unfog.channel import deconvolution
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths import mixture
from unfog.maths.arrays import Array
from unfog.simulation import play
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem

MIX = np.array([[1, 0.7, 0], [0, 1, -0.4], [0, 0, 1]])
SAMPLE = np.random.default_rng(6).gamma(1.5, 1.0, (9, D)) @ MIX - [1.0, 0.0, 3.0]


def enumerated(
    law: mixture.Mixture, known: Knowledge, state: State, noisy: Array
) -> list[tuple[Array, Array]]:
    """The moments of context and bias: each component's joint Gaussian of (c, gamma, n), conditioned."""
    zero, seen = np.zeros((D, D)), np.tile(np.eye(D), 3)
    chances, means, covs = [], [], []
    for weight, mean, cov in zip(*law, strict=True):
        centre = np.concatenate([mean, state.mean, np.zeros(D)])
        joint = np.block([[cov, zero, zero], [zero, state.cov, zero], [zero, zero, known.noise_cov]])
        chances.append(weight * multivariate_normal.pdf(noisy, seen @ centre, seen @ joint @ seen.T))
        found = given(centre, joint, seen, noisy)
        means.append(found[0])
        covs.append(found[1])
    weights = np.array(chances) / sum(chances)
    assert weights.max() < 0.999  # a case in which several components count
    mean = sum(w * m for w, m in zip(weights, means, strict=True))
    spread = [w * (c + np.outer(m - mean, m - mean)) for w, m, c in zip(weights, means, covs, strict=True)]
    cov = sum(spread)
    return [(mean[part], cov[part, part]) for part in (slice(D), slice(D, 2 * D))]


def as_mixture(law: deconvolution.Law) -> mixture.Mixture:
    return mixture.Mixture(law.weights, law.atoms, np.tile(law.kernel, (len(law.atoms), 1, 1)))


RNG = np.random.default_rng(12)
OWN = mixture.Mixture(
    np.array([0.2, 0.5, 0.3]),
    np.array([[1.0, 0.0, -2.0], [-1.0, 1.0, 0.5], [2.0, 2.0, 0.0]]),
    np.stack([spd(RNG, D, 0.1, 1.0), spd(RNG, D, 0.3, 3.0), np.diag([0.4, 0.0, 0.2])]),
)
LAWS: dict[str, tuple[Any, Any]] = {
    "atoms": (Empirical(bandwidth=0.0), lambda: as_mixture(deconvolution.kernel_law(SAMPLE, 9, 0.0))),
    "kernels": (Empirical(), lambda: as_mixture(deconvolution.kernel_law(SAMPLE, 9, 0.5))),
    "weighted": (Empirical(atoms=5), lambda: as_mixture(deconvolution.kernel_law(SAMPLE, 5, 0.5))),
    "mixture": (Mixture(), lambda: OWN),
}


def test_one_round_is_bayes_rule_written_out(known: Knowledge, rng: np.random.Generator) -> None:
    for name in LAWS:
        check_one_round_is_bayes_rule_written_out(name, known, rng)


def check_one_round_is_bayes_rule_written_out(name: str, known: Knowledge, rng: np.random.Generator) -> None:
    denoiser, law = LAWS[name][0], LAWS[name][1]()
    told = known._replace(sample=SAMPLE, mixture=OWN)
    parameters = denoiser.setup(told, None)
    states = [denoiser.start(parameters), State(rng.normal(size=D), spd(rng, D, 0.05, 1.0))]
    for state in states:
        for noisy in rng.normal(0, 1.5, (3, D)):
            context, bias = enumerated(law, known, state, noisy)
            same(denoiser.predict(parameters, state, noisy), *context, 1e-9)
            same(Context(*denoiser.update(parameters, state, noisy, None)), *bias, 1e-9)


@pytest.mark.parametrize("denoiser", [Empirical(pairs=True), Mixture(pairs=True)], ids=repr)
def test_pairs_show_the_bias_as_in_a_joint_gaussian(denoiser: Any, known: Knowledge) -> None:
    story = Story(known._replace(sample=SAMPLE, mixture=OWN), 6)
    parameters = denoiser.setup(story.known, None)
    state = denoiser.start(parameters)
    for t in range(6):
        same(Context(*state), *story.bias_posterior(t, pairs=True), 1e-9)
        state = denoiser.update(parameters, state, story.noisy[t], story.contexts[t])


def test_a_gaussian_law_is_exact(known: Knowledge) -> None:
    for kind in ["wide kernels", "one component"]:
        for pairs in [False, True]:
            check_a_gaussian_law_is_exact(kind, pairs, known)


def check_a_gaussian_law_is_exact(kind: str, pairs: bool, known: Knowledge) -> None:
    cov = np.cov(SAMPLE.T, bias=True)
    told = known._replace(context_mean=SAMPLE.mean(0), context_cov=cov, sample=SAMPLE)
    law = mixture.Mixture(np.ones(1), SAMPLE.mean(0)[None], cov[None])
    one: Any = Mixture(pairs=pairs) if kind == "one component" else Empirical(bandwidth=1e6, pairs=pairs)
    story = Story(told._replace(mixture=law), 12)
    for found, right in zip(story.beliefs(one), story.beliefs(Exact(pairs=pairs)), strict=True):
        same(found, *right, 1e-8)
    parameters, exact = one.setup(story.known, None), Exact(pairs=pairs).setup(told, None)
    pair = (
        one.predict_reading(parameters, one.start(parameters)),
        Exact().predict_reading(exact, Exact().start(exact)),
    )
    np.testing.assert_allclose(*pair, rtol=1e-9)


def test_one_atom_is_certain_and_shows_the_bias_as_a_pair_does(known: Knowledge) -> None:
    atom = SAMPLE[:1]
    story = Story(known._replace(sample=atom), 5)
    story.contexts = np.tile(atom, (5, 1))
    for belief in story.beliefs(Empirical()):
        same(belief, atom[0], np.zeros((D, D)), 1e-12)
    alone, pairs = (walked(Empirical(pairs=pairs), story) for pairs in (False, True))
    same(Context(*alone), *pairs, 1e-9)


def walked(denoiser: Any, story: Story) -> State:
    parameters = denoiser.setup(story.known, None)
    state: State = denoiser.start(parameters)
    for noisy, context in zip(story.noisy, story.contexts, strict=True):
        state = denoiser.update(parameters, state, noisy, context)
    return state


def test_the_order_of_the_sample_is_nothing(known: Knowledge) -> None:
    story, other = (Story(known._replace(sample=told), 8) for told in (SAMPLE, SAMPLE[::-1]))
    for found, right in zip(story.beliefs(Empirical()), other.beliefs(Empirical()), strict=True):
        same(found, *right, 1e-10)


def test_components_in_another_order_or_twice_are_the_same_law(known: Knowledge) -> None:
    twice = mixture.Mixture(
        np.tile(OWN.weights / 2, 2), np.tile(OWN.means, (2, 1)), np.tile(OWN.covs, (2, 1, 1))
    )
    back = mixture.Mixture(*(part[::-1] for part in OWN))
    right = Story(known._replace(mixture=OWN), 8).beliefs(Mixture())
    for law in (twice, back):
        for found, belief in zip(
            Story(known._replace(mixture=law), 8).beliefs(Mixture()), right, strict=True
        ):
            same(found, *belief, 1e-10)


class Line:
    """Contexts that are skewed, in one dimension, and the posterior of the bias on a dense grid."""

    def __init__(self, seed: int, rounds: int) -> None:
        rng = np.random.default_rng(seed)
        self.atoms = rng.gamma(1.2, 1.0, 60)
        self.bias = rng.normal(0, 1.5)
        self.noisy = rng.choice(self.atoms, rounds) + self.bias + rng.normal(0, 0.7, rounds)
        self.grid = np.linspace(-8, 8, 1201)
        zero, one = np.zeros(1), np.eye(1)
        told = zero, one, 0.49 * one, 2.25 * one, zero, one
        self.known = Knowledge(*told, reward_var=np.asarray(1.0), sample=self.atoms[:, None])

    def truth(self, bandwidth: float) -> tuple[list[Array], list[Array]]:
        """After each round the moments of the bias, and in each those of the context."""
        law = deconvolution.kernel_law(self.atoms[:, None], 60, bandwidth)
        atoms, kernel = law.atoms[:, 0], float(law.kernel[0, 0])
        logs, biases, contexts = norm.logpdf(self.grid, 0, 1.5), [], []
        for noisy in self.noisy:
            density = norm.pdf(noisy - self.grid[:, None], atoms, np.sqrt(0.49 + kernel)) / 60
            joint = density * np.exp(logs - logs.max())[:, None]  # of (gamma, atom)
            joint /= joint.sum()
            gain = kernel / (kernel + 0.49)
            means = atoms + gain * (noisy - self.grid[:, None] - atoms)
            mean = (joint * means).sum()
            contexts.append(np.array([mean, (joint * (means - mean) ** 2).sum() + kernel - gain * kernel]))
            logs = logs + np.log(density.sum(1))
            weights = np.exp(logs - logs.max())
            weights /= weights.sum()
            centre = weights @ self.grid
            biases.append(np.array([centre, weights @ (self.grid - centre) ** 2]))
        return biases, contexts


@pytest.mark.parametrize("bandwidth", [0.0, 0.5])
def test_many_rounds_stay_close_to_a_dense_grid(bandwidth: float) -> None:
    """Over 24 trials: the bias's mean in units of its deviation, its variance, the context's mean."""
    gaps: dict[int, list[Array]] = {0: [], 4: [], 59: []}
    for seed in range(24):
        line = Line(seed, 60)
        biases, contexts = line.truth(bandwidth)
        denoiser = Empirical(bandwidth=bandwidth)
        parameters = denoiser.setup(line.known, None)
        state = denoiser.start(parameters)
        for t, noisy in enumerate(line.noisy):
            belief = denoiser.predict(parameters, state, np.array([noisy]))
            state = denoiser.update(parameters, state, np.array([noisy]), None)
            if t in gaps:
                (mean, variance), (context, _) = biases[t], contexts[t]
                moved = (state.mean[0] - mean) / variance**0.5, np.log(state.cov[0, 0] / variance)
                gaps[t].append(np.array([*moved, belief.mean[0] - context]))
    off = {t: np.sqrt(np.mean(np.square(found), 0)) for t, found in gaps.items()}
    np.testing.assert_allclose(off[0], 0, atol=1e-6)  # exact, but for the grid
    assert max(off[4][0], off[59][0]) < 0.2
    assert max(off[4][1], off[59][1]) < 0.3
    assert off[4][2] < 0.1
    assert off[59][2] < 0.02


def test_the_bias_is_found_by_the_shape_of_contexts() -> None:
    """A skewed law says more of the bias than its moments: the filter's variance is below the Gaussian's."""
    line = Line(3, 200)
    exact = line.known._replace(
        context_mean=line.atoms.mean()[None], context_cov=np.cov(line.atoms)[None, None]
    )
    state = Empirical().start(Empirical().setup(line.known, None))
    for noisy in line.noisy:
        state = Empirical().update(Empirical().setup(line.known, None), state, np.array([noisy]), None)
    gaussian = 1 / (1 / 2.25 + 200 / float(exact.context_cov[0, 0] + 0.49))
    assert state.cov[0, 0] < 0.9 * gaussian
    assert abs(state.mean[0] - line.bias) < 4 * state.cov[0, 0] ** 0.5


def test_the_rows_are_refused_where_nothing_is_told() -> None:
    for agent, line in [
        (
            "empirical",
            "agents: 'empirical' needs contexts of the past, and this world tells none; allowed: a pro",
        ),
        (
            "mixture",
            "agents: 'mixture' needs a mixture of Gaussians for contexts, and this world tells none; al",
        ),
    ]:
        check_the_rows_are_refused_where_nothing_is_told(agent, line)


def check_the_rows_are_refused_where_nothing_is_told(agent: str, line: str) -> None:
    with pytest.raises(InputError) as refused:
        play(GaussianProblem(dim=2), ["unfog", agent], rounds=2, trials=2)
    assert str(refused.value).startswith(line)
    assert f"prior_{'contexts' if agent == 'empirical' else 'noisy_contexts'} = " in str(refused.value)


def test_they_cannot_go_without_what_they_are_told(known: Knowledge) -> None:
    for denoiser in [Empirical(), Mixture()]:
        check_they_cannot_go_without_what_they_are_told(denoiser, known)


def check_they_cannot_go_without_what_they_are_told(denoiser: Any, known: Knowledge) -> None:
    with pytest.raises(ValueError, match=f"{denoiser.name} must be told a "):
        denoiser.setup(known, None)


def test_settings_that_are_none_are_refused() -> None:
    bad: dict[str, Any] = {"atoms": 0, "bandwidth": -0.1, "pairs": 1}
    for field, value in bad.items():
        with pytest.raises(InputError, match=f"^{field}: "):
            Empirical(**{field: value})
