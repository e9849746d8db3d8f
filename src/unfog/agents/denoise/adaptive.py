"""Denoise without knowing the trouble: a bank of channels, weighed by what they say of each noisy context.

    gamma walks by step Sigma_gamma a round,   noise ~ N(0, size Sigma_n), or Student's t of that scale

Hypotheses are all pairs of a few sizes of the noise and a few steps of the bias, and heavy tails with some of
these steps. Each has its own belief about the bias (maths/bank.py, with x = gamma and the context for what
hides it). Given chat_t the weights are those of Bayes' rule, this measurement included, and c_t has the mean
and the covariance of the mixture: expected features of the second degree at most are exact. That the noise
is not as told, be it of another size or with heavy tails, has the probability `distrust` to begin with, and
so has, by itself, that the bias walks. With the rate `switch` a round it is all open again, since troubles
begin in the middle of a stream.

What is learnt of the channel is learnt from noisy contexts, or from pairs where these are shown: a reward
says little of it. Coordinates that were lost cost nothing but what they would have said.

It cannot find out what does not show: a law of contexts that is wrong by a shift looks like a bias, and
without true contexts so does a season.
"""

from dataclasses import dataclass
from math import log
from typing import NamedTuple

import numpy as np

from unfog import inputs
from unfog.agents.denoise.bias import FromEither
from unfog.agents.parts import Denoiser, Expects, Privilege
from unfog.features import Context
from unfog.inputs import InputError
from unfog.maths import bank
from unfog.maths.arrays import Array, settled
from unfog.maths.bank import Beliefs, Family, Reading
from unfog.model.knowledge import Knowledge

MOST, MOST_TAILS = 15, 1000  # sizes, and steps; degrees of freedom
NODES = 6  # Gaussians that stand for heavy tails
REACH = log(0.35), log(60.0)  # the logarithms of their sizes


class Hypothesis(NamedTuple):
    """What may be the matter with a channel."""

    size: float  # of the noise, by which its covariance is multiplied
    step: float  # of the bias, in shares of its prior covariance a round
    tails: float | None = None  # degrees of freedom, where they are heavy


class Parameters(NamedTuple):
    """The channel as it is told, and the bank."""

    mean: Array  # (d,)    mu_c
    context_cov: Array  # (d, d)  Sigma_c
    noise_cov: Array  # (d, d)  Sigma_n
    bias_cov: Array  # (d, d)  Sigma_gamma
    families: tuple[Family, ...]
    prior: Array  # (H,)  probabilities
    sizes: Array  # (H,)  the variance of the noise, in that told


class State(NamedTuple):
    """The bias under every hypothesis, and how probable each one is."""

    beliefs: tuple[Beliefs, ...]
    weights: Array  # (..., H)  logarithms


@dataclass(frozen=True, kw_only=True)
class Adaptive(FromEither, Denoiser, Expects):
    """Its settings: the hypotheses, `distrust` of what is told, the rate of `switch`; `pairs` as for `exact`.

    There are so many `sizes`, neighbours `ratio` apart, about that told; and besides none so many `steps`,
    from the `fastest` down, neighbours `slowdown` apart. `tails` are degrees of freedom; 0: no heavy ones.
    """

    sizes: int = 7
    ratio: float = 2.236
    steps: int = 4
    fastest: float = 0.05
    slowdown: float = 4.0
    tails: float = 3.0
    distrust: float = 0.7
    switch: float = 1e-3

    name = "adaptive"
    note = "finds out the size of the noise, the speed of the bias and the weight of tails"
    cost = 8.0
    takes_gaps = True

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        if inputs.count("sizes", self.sizes, 1, MOST) % 2 == 0:
            raise InputError("sizes", self.sizes, f"an odd number, at most {MOST}")
        inputs.count("steps", self.steps, 0, MOST)
        for field, value in (("ratio", self.ratio), ("slowdown", self.slowdown)):
            if inputs.positive(field, value) <= 1:
                raise InputError(field, value, "a number greater than 1")
        inputs.positive("fastest", self.fastest)
        if inputs.not_negative("tails", self.tails) and not 2 < self.tails <= MOST_TAILS:
            raise InputError("tails", self.tails, f"0 for none, or a number above 2, at most {MOST_TAILS}")
        for field, value in (("distrust", self.distrust), ("switch", self.switch)):
            if not 0 <= inputs.not_negative(field, value) < 1:
                raise InputError(field, value, "a number from 0 to below 1")

    def hypotheses(self) -> list[Hypothesis]:
        """All of them, in the order of their weights; the told one is among them."""
        sizes = [self.ratio ** (i - self.sizes // 2) for i in range(self.sizes)]
        steps = [0.0, *(self.fastest / self.slowdown**i for i in reversed(range(self.steps)))]
        plain = [Hypothesis(size, step) for size in sizes for step in steps]
        return plain + [Hypothesis(1.0, step, self.tails) for step in steps[::2] if self.tails]

    def _prior(self, hypothesis: Hypothesis) -> float:
        """How probable it is, up to a constant: whether the noise is as told, and whether the bias walks."""
        told, others = 1 - self.distrust, self.sizes - 1 + (self.tails > 0)
        noise = told if hypothesis[::2] == (1.0, None) else self.distrust / others
        return noise * (told if hypothesis.step == 0 else self.distrust / self.steps)

    def probabilities(self, state: State) -> Array:
        """How probable each hypothesis is: (..., H)."""
        found: Array = state.weights.__array_namespace__().exp(state.weights)
        return found

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Parameters:
        """The families of hypotheses: those with Gaussian noise, and those with heavy tails."""
        xp, every = known.noise_cov.__array_namespace__(), self.hypotheses()
        plain, heavy = ([h for h in every if (h.tails is None) == gaussian] for gaussian in (True, False))
        families = tuple(_family(group, known) for group in (plain, heavy) if group)
        sizes = xp.concat([(family.factors * xp.exp(family.chances)).sum(-1) for family in families])
        chances = xp.asarray([self._prior(h) for h in every], dtype=known.noise_cov.dtype)
        told = known.context_mean, known.context_cov, known.noise_cov, known.bias_cov
        return Parameters(*told, families, chances / chances.sum(), sizes)

    def start(self, parameters: Parameters) -> State:
        """The prior of the bias under every hypothesis, and theirs."""
        xp, beliefs = parameters.mean.__array_namespace__(), []
        for family in parameters.families:
            number = family.keep.shape[0]
            mean = xp.zeros((number, *parameters.mean.shape), dtype=parameters.mean.dtype)
            beliefs.append(Beliefs(mean, xp.stack([parameters.bias_cov] * number)))
        return State(tuple(beliefs), xp.log(parameters.prior))

    def predict(self, parameters: Parameters, state: State, noisy: Array) -> Context:
        """Mean and covariance of this round's context: noisy (..., d), not a number where it was lost."""
        xp = noisy.__array_namespace__()
        readings = _readings(parameters, state, noisy - parameters.mean, parameters.context_cov)
        weights = xp.exp(_weights(state, readings))
        away, cov = bank.hidden_moments(weights, readings, parameters.context_cov)
        return Context(parameters.mean + away, cov)

    def expected(self, parameters: Parameters, state: State) -> tuple[Array, Array]:
        """Of the mixture over the hypotheses, before the measurement."""
        xp = parameters.mean.__array_namespace__()
        weights = xp.exp(state.weights)[..., None]
        means = xp.concat([b.mean for b in state.beliefs], axis=-2)
        spread = xp.concat([xp.linalg.diagonal(b.cov) for b in state.beliefs], axis=-2)
        hidden, noise = (xp.linalg.diagonal(x) for x in (parameters.context_cov, parameters.noise_cov))
        centre = (weights * means).sum(-2)
        within = spread + hidden + parameters.sizes[:, None] * noise
        variance = (weights * (within + (means - centre[..., None, :]) ** 2)).sum(-2)
        return parameters.mean + centre, variance

    def update(self, parameters: Parameters, state: State, noisy: Array, context: Array | None) -> State:
        """The bias under every hypothesis after this round and its step, and the weights."""
        xp = noisy.__array_namespace__()
        known = context if self.pairs else None
        hidden = parameters.context_cov if known is None else xp.zeros_like(parameters.context_cov)
        value = noisy - (parameters.mean if known is None else known)
        readings = _readings(parameters, state, value, hidden)
        each = zip(parameters.families, state.beliefs, readings, strict=True)
        beliefs = tuple(bank.moved(*one) for one in each)
        weights = bank.switched(_weights(state, readings), parameters.prior, self.switch)
        return State(beliefs, weights)


def _family(group: list[Hypothesis], known: Knowledge) -> Family:
    """Hypotheses with equally many factors."""
    xp, dim = known.noise_cov.__array_namespace__(), known.context_mean.shape[0]
    factors, chances = (np.asarray(x) for x in zip(*map(_noise, group), strict=True))
    keep = [1.0 if h.tails is None else (h.tails + dim) / (h.tails + dim + 2) for h in group]
    steps = [h.step for h in group]
    told = factors, np.log(chances), keep, steps
    first, second, third, walk = (xp.asarray(x, dtype=known.noise_cov.dtype) for x in told)
    return Family(first, second, third, walk[:, None, None] * known.bias_cov)


def _noise(hypothesis: Hypothesis) -> tuple[list[float], list[float]]:
    """The factors of the noise's covariance, and their probabilities."""
    if hypothesis.tails is None:
        return [hypothesis.size], [1.0]
    nu, logs = hypothesis.tails, np.linspace(*REACH, NODES)
    # A precision w ~ Gamma(nu/2, nu/2) has this density of ln w, up to a constant; the factor is 1 / w.
    heights = np.exp(-0.5 * nu * (logs + np.exp(-logs)))
    return (hypothesis.size * np.exp(logs)).tolist(), (heights / heights.sum()).tolist()


def _readings(parameters: Parameters, state: State, value: Array, hidden: Array) -> list[Reading]:
    """What a measurement of the bias says under every hypothesis."""
    xp = value.__array_namespace__()
    lost = xp.isnan(value)
    there = None if settled(~lost) else (~lost).astype(value.dtype)
    each = zip(parameters.families, state.beliefs, strict=True)
    return [bank.read(*one, parameters.noise_cov, hidden, value, there) for one in each]


def _weights(state: State, readings: list[Reading]) -> Array:
    """Logarithms of the hypotheses' probabilities with this measurement."""
    xp = state.weights.__array_namespace__()
    return bank.weighed(state.weights, xp.concat([r.density for r in readings], axis=-1))
