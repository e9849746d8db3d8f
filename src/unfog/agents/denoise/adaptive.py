"""A bank of channels, for when the told channel may be wrong in an unknown way.

Each hypothesis has a filter of its own for the bias (maths/kalman.py); those with equally many Gaussians for
the noise run as one family.
"""

from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import numpy as np

from unfog import validation
from unfog.agents.base import (
    Denoiser,
    KnowsBias,
    PredictsReading,
    Privilege,
    TakesNoise,
    WeighsHypotheses,
)
from unfog.agents.denoise import mixture
from unfog.agents.denoise.bias import FromEither, spread
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths import kalman
from unfog.maths.arrays import Array, holds_everywhere
from unfog.maths.kalman import Beliefs, Family, Reading, information_share
from unfog.maths.mixture import moments
from unfog.validation import InputError

NODES = 6  # Gaussians that stand for heavy tails
REACH = log(0.35), log(60.0)  # the logarithms of their sizes


MOST = 15  # sizes, and steps
TAILS = 3.0, 10.0  # the degrees of freedom that a few Gaussians can stand for
SAMPLE = mixture.Empirical()  # the denoiser of the hypothesis that believes in the sample


class Hypothesis(NamedTuple):
    """What may be wrong with a channel, or with contexts."""

    size: float = 1.0  # of the noise, by which its covariance is multiplied
    step: float = 0.0  # of the bias, in shares of its prior covariance a round
    tails: float | None = None  # degrees of freedom, where they are heavy
    sample: bool = False  # contexts are those of the told sample, not Gaussian


class Parameters(NamedTuple):
    """The channel as it is told, and the bank."""

    mean: Array  # (d,)    mu_c
    context_cov: Array  # (d, d)  Sigma_c
    noise_cov: Array  # (..., d, d)  Sigma_n
    bias_cov: Array  # (d, d)  Sigma_gamma
    families: tuple[Family, ...]
    prior: Array  # (H,)  probabilities
    sizes: Array  # (H,)  the variance of the noise, in that told; without the last where there is a sample
    sample: mixture.EmpiricalParameters | None  # if one is told; then it is the last hypothesis


class State(NamedTuple):
    """The bias under every hypothesis, and how probable each one is."""

    beliefs: tuple[Beliefs, ...]
    weights: Array  # (..., H)  logarithms
    sample: Any = ()  # the bias, if contexts are those of the sample: denoise/mixture.py


class Seen(NamedTuple):
    """What a noisy context says."""

    readings: list[Reading]  # under each family of hypotheses
    sampled: Any  # context and bias if contexts are those of the sample; None without one
    weights: Array  # (..., H)  logarithms of the hypotheses' probabilities


@dataclass(frozen=True, kw_only=True)
class Adaptive(FromEither, Denoiser, PredictsReading, KnowsBias, WeighsHypotheses, TakesNoise):
    """Denoise without knowing the trouble: a bank of channels, weighed by what they say of each noisy
    context.

        gamma_t = gamma_{t-1} + N(0, step Sigma_gamma)
        n_t ~ N(0, size Sigma_n), or Student's t of that scale
        n_t: the noise of round t;   step, size: numbers that hypotheses differ in

    Hypotheses are all pairs of a few sizes of the noise and a few steps of the bias, and heavy tails with
    some of these steps. Each has its own belief about the bias (maths/kalman.py, with x = gamma and the
    context for what hides it). Given chat_t the weights are those of Bayes' rule, this measurement included,
    and c_t has the mean and the covariance of the mixture: expected features of the second degree at most are
    exact. That the noise is not as told, be it of another size or with heavy tails, has the probability
    `distrust` to begin with, and that the bias walks, by itself, `unrest`. With the rate `switch` a round it
    is all open again, since troubles begin in the middle of a stream.

    With a told sample of contexts there is one more hypothesis: the channel is as told, and contexts are
    those of the sample (`Empirical`) instead of Gaussian; not where pairs are shown.

    What is learnt of the channel is learnt from noisy contexts, or from pairs where these are shown: a reward
    says little of it. Coordinates that were lost cost nothing but what they would have said. The noise of a
    reading that has its own is of the same size, relative to what is told of it.

    It cannot find out what does not show: a law of contexts that is wrong by a shift looks like a bias, and
    without true contexts so does a season.

    Settings
    --------
    The hypotheses, `distrust`, `unrest`, the rate of `switch`; `pairs` as for `exact`.

    There are so many `sizes`, neighbours a factor `spacing` apart, about that told; and besides none so many
    `steps`, from the `fastest` down, each `slowdown` times the next. `tails` are degrees of freedom; 0: none.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Adaptive(), unfog.learn.Scaled(), unfog.choose.RandUcb()
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [4.6, 8.0]
    """

    sizes: int = 7
    spacing: float = 2.236
    steps: int = 4
    fastest: float = 0.05
    slowdown: float = 4.0
    tails: float = 3.0
    distrust: float = 0.5
    unrest: float = 0.3
    switch: float = 1e-3

    name = "adaptive"
    note = "finds out the size of the noise, the speed of the bias and the weight of tails"
    cost = 8.0
    squares = 20
    takes_gaps = True

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        if validation.count("sizes", self.sizes, 1, MOST) % 2 == 0:
            raise InputError("sizes", self.sizes, f"an odd number, at most {MOST}")
        validation.count("steps", self.steps, 0, MOST)
        for field, value in (("spacing", self.spacing), ("slowdown", self.slowdown)):
            if validation.positive(field, value) <= 1:
                raise InputError(field, value, "a number greater than 1")
        validation.positive("fastest", self.fastest)
        if validation.not_negative("tails", self.tails) and not TAILS[0] <= self.tails <= TAILS[1]:
            raise InputError("tails", self.tails, "0 for none, or a number from {:g} to {:g}".format(*TAILS))
        shares = ("distrust", self.distrust), ("unrest", self.unrest), ("switch", self.switch)
        for field, value in shares:
            if not 0 <= validation.not_negative(field, value) < 1:
                raise InputError(field, value, "a number from 0 to below 1")

    def hypotheses(self, sample: bool = False) -> list[Hypothesis]:
        """All hypotheses, in the order of their weights; with a `sample` of contexts the last is about it."""
        return list(self._priors(sample))

    def _priors(self, sample: bool) -> dict[Hypothesis, float]:
        """The prior probability of each hypothesis, up to a constant; noise and bias are independent.

        A told sample is as probable as a channel that is as told.
        """
        sizes = [self.spacing ** (i - self.sizes // 2) for i in range(self.sizes)]
        steps = [self.fastest / self.slowdown**i for i in reversed(range(self.steps))]
        heavy = [(1.0, self.tails, steps[1::2])] if self.tails else []
        noises = [*((size, None, steps) for size in sizes), *heavy]
        priors, others = dict[Hypothesis, float](), max(1, len(noises) - 1)
        for size, tails, walks in noises:
            noise = 1 - self.distrust if (size, tails) == (1.0, None) else self.distrust / others
            priors[Hypothesis(size, 0.0, tails)] = noise * (1 - self.unrest if walks else 1.0)
            priors |= {Hypothesis(size, step, tails): noise * self.unrest / len(walks) for step in walks}
        baseline = priors[Hypothesis()]
        return priors | ({Hypothesis(sample=True): baseline} if sample and not self.pairs else {})

    def probabilities(self, state: State) -> Array:
        """How probable each hypothesis is: (..., H)."""
        probabilities: Array = state.weights.__array_namespace__().exp(state.weights)
        return probabilities

    def labels(self, parameters: Parameters) -> tuple[dict[str, float], ...]:
        """The size of the noise, the step of the bias, degrees of freedom, whether the sample is believed."""
        hypotheses = self.hypotheses(parameters.sample is not None)
        return tuple(
            {"size": h.size, "step": h.step, "tails": h.tails or np.inf, "sample": float(h.sample)}
            for h in hypotheses
        )

    def weights(self, parameters: Parameters, state: State) -> Array:
        """How probable each hypothesis is: (..., H)."""
        return self.probabilities(state)

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Parameters:
        """The families of hypotheses: those with Gaussian noise, and those with heavy tails; the sample."""
        xp, every = known.noise_cov.__array_namespace__(), self._priors(known.sample is not None)
        plain = [h for h in every if h.tails is None and not h.sample]
        heavy = [h for h in every if h.tails is not None]
        families = tuple(family(hypotheses, known, self.pairs) for hypotheses in (plain, heavy) if hypotheses)
        sizes = xp.concat([(group.factors * xp.exp(group.chances)).sum(-1) for group in families])
        chances = xp.asarray(list(every.values()), dtype=known.noise_cov.dtype)
        sample = SAMPLE.setup(known, None) if Hypothesis(sample=True) in every else None
        channel = known.context_mean, known.context_cov, known.noise_cov, known.bias_cov
        return Parameters(*channel, families, chances / chances.sum(), sizes, sample)

    def with_noise(self, parameters: Parameters, noise: Array) -> Parameters:
        """The channel of a reading with this noise, under every hypothesis of its size."""
        sample = None if parameters.sample is None else SAMPLE.with_noise(parameters.sample, noise)
        return parameters._replace(noise_cov=noise, sample=sample)

    def start(self, parameters: Parameters) -> State:
        """The prior of the bias under every hypothesis, and the hypotheses' own."""
        xp, beliefs = parameters.mean.__array_namespace__(), []
        for group in parameters.families:
            number = group.keep.shape[0]
            mean = xp.zeros((number, *parameters.mean.shape), dtype=parameters.mean.dtype)
            beliefs.append(Beliefs(mean, xp.stack([parameters.bias_cov] * number)))
        sample = () if parameters.sample is None else SAMPLE.start(parameters.sample)
        tiny = xp.finfo(parameters.prior.dtype).tiny  # a probability of zero has no logarithm
        return State(tuple(beliefs), xp.log(xp.maximum(parameters.prior, tiny)), sample)

    def predict(self, parameters: Parameters, state: State, noisy: Array) -> Context:
        """Mean and covariance of this round's context: noisy (..., d), not a number where it was lost."""
        xp, number = noisy.__array_namespace__(), parameters.sizes.shape[0]
        evidence = _weigh_reading(parameters, state, noisy, parameters.mean, parameters.context_cov)
        gaussian = kalman.apply_bayes(evidence.weights[..., :number], xp.zeros_like(parameters.sizes))
        shift, cov = kalman.hidden_moments(xp.exp(gaussian), evidence.readings, parameters.context_cov)
        belief = Context(parameters.mean + shift, cov)
        if evidence.sampled is None:
            return belief
        share = xp.exp(evidence.weights[..., -1:])
        return Context(
            *moments(xp.concat([1 - share, share], axis=-1), *_stack_moments(belief, evidence.sampled[0]))
        )

    def predict_reading(self, parameters: Parameters, state: State) -> tuple[Array, Array]:
        """The moments of the mixture over the hypotheses, before the measurement."""
        xp = parameters.mean.__array_namespace__()
        weights = xp.exp(state.weights)
        means = xp.concat([b.mean for b in state.beliefs], axis=-2)
        spread = xp.concat([xp.linalg.diagonal(b.cov) for b in state.beliefs], axis=-2)
        hidden, noise = (xp.linalg.diagonal(x) for x in (parameters.context_cov, parameters.noise_cov))
        means = parameters.mean + means
        within = spread + hidden + parameters.sizes[:, None] * noise[..., None, :]
        means, within = xp.broadcast_arrays(means, within)
        if parameters.sample is not None:
            sample_moments = SAMPLE.predict_reading(parameters.sample, state.sample)
            shape = (*means.shape[:-2], 1, means.shape[-1])
            sampled = (xp.broadcast_to(x[..., None, :], shape) for x in sample_moments)
            means, within = (
                xp.concat([x, y], axis=-2) for x, y in zip((means, within), sampled, strict=True)
            )
        centre = (weights[..., None] * means).sum(-2)
        return centre, (weights[..., None] * (within + (means - centre[..., None, :]) ** 2)).sum(-2)

    def update(self, parameters: Parameters, state: State, noisy: Array, context: Array | None) -> State:
        """The bias under every hypothesis after this round and its step, and the weights."""
        xp = noisy.__array_namespace__()
        if self.pairs and context is not None:
            evidence = _weigh_reading(
                parameters, state, noisy, context, xp.zeros_like(parameters.context_cov)
            )
        else:
            evidence = _weigh_reading(parameters, state, noisy, parameters.mean, parameters.context_cov)
        groups = zip(parameters.families, state.beliefs, evidence.readings, strict=True)
        beliefs = tuple(kalman.advance(*group) for group in groups)
        weights = kalman.mix_with_prior(evidence.weights, parameters.prior, self.switch)
        return State(beliefs, weights, () if evidence.sampled is None else evidence.sampled[1])

    def bias(self, parameters: Parameters, state: State) -> tuple[Array, Array]:
        """The moments of the mixture over the hypotheses."""
        return _bias_moments(state)


def family(group: list[Hypothesis], known: Knowledge, pairs: bool) -> Family:
    """Hypotheses with equally many factors; with `pairs` no context hides the bias."""
    xp, dim = known.noise_cov.__array_namespace__(), known.context_mean.shape[0]
    rows = (np.asarray(x) for x in zip(*map(_noise_factors, group), strict=True))
    factors, chances = (xp.asarray(x, dtype=known.noise_cov.dtype) for x in rows)
    hidden = xp.trace(xp.linalg.solve(known.noise_cov, known.context_cov)) / dim * (not pairs)
    keep = xp.ones_like(factors[:, 0])
    if factors.shape[1] > 1:
        keep = xp.stack([information_share(f, p, hidden, dim) for f, p in zip(factors, chances, strict=True)])
    walk = xp.asarray([h.step for h in group], dtype=known.noise_cov.dtype)
    return Family(factors, xp.log(chances), keep, walk[:, None, None] * known.bias_cov)


def _noise_factors(hypothesis: Hypothesis) -> tuple[list[float], list[float]]:
    """The factors of the noise's covariance, and their probabilities."""
    if hypothesis.tails is None:
        return [hypothesis.size], [1.0]
    nu, logs = hypothesis.tails, np.linspace(*REACH, NODES)
    # A precision w ~ Gamma(nu/2, nu/2) has this density of ln w, up to a constant; the factor is 1 / w.
    heights = np.exp(-0.5 * nu * (logs + np.exp(-logs)))
    return (hypothesis.size * np.exp(logs)).tolist(), (heights / heights.sum()).tolist()


def _bias_moments(state: State) -> tuple[Array, Array]:
    """Mean and covariance of the bias, averaged over the hypotheses."""
    xp = state.weights.__array_namespace__()
    moments_of_families = [spread(*belief) for belief in state.beliefs]
    if state.sample:
        mean, cov = spread(*state.sample)
        moments_of_families.append((mean[..., None, :], cov[..., None, :, :]))
    batch = np.broadcast_shapes(*(mean.shape[:-2] for mean, _ in moments_of_families))
    means = [xp.broadcast_to(mean, (*batch, *mean.shape[-2:])) for mean, _ in moments_of_families]
    covs = [xp.broadcast_to(cov, (*batch, *cov.shape[-3:])) for _, cov in moments_of_families]
    return moments(xp.exp(state.weights), xp.concat(means, axis=-2), xp.concat(covs, axis=-3))


def _weigh_reading(parameters: Parameters, state: State, noisy: Array, centre: Array, hidden: Array) -> Seen:
    """What a noisy context says; of the true one `centre` is known, and `hidden` is the rest's covariance."""
    xp, value = noisy.__array_namespace__(), noisy - centre
    lost = xp.isnan(value)
    present = None if holds_everywhere(~lost) else (~lost).astype(value.dtype)
    groups = zip(parameters.families, state.beliefs, strict=True)
    noise = parameters.noise_cov
    noise = noise if noise.ndim == 2 else noise[..., None, None, :, :]  # hypotheses, and their factors
    readings = [kalman.read(*group, noise, hidden, value, present) for group in groups]
    densities, sampled = [reading.density for reading in readings], None
    if parameters.sample is not None:
        *sampled, density = mixture.condition(parameters.sample, state.sample, noisy, present)
        densities.append(density[..., None])
    return Seen(readings, sampled, kalman.apply_bayes(state.weights, xp.concat(densities, axis=-1)))


def _stack_moments(first: Context, second: Context) -> tuple[Array, Array]:
    """Means (..., 2, d) and covariances (..., 2, d, d) of two beliefs."""
    xp = first.mean.__array_namespace__()
    covs = [xp.broadcast_to(x.cov, (*x.mean.shape, x.mean.shape[-1])) for x in (first, second)]
    return xp.stack([first.mean, second.mean], -2), xp.stack(covs, -3)
