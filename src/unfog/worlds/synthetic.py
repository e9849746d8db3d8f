"""The synthetic bandits: Gaussian rewards, rewards of 0 and 1, and contexts in two parts.

The first two share c ~ N(mu_c, Sigma_c), chat = c + gamma* + n and scores phi(a, c)'theta* (`Synthetic`);
each says what a score pays. The paper does not say how actions are drawn, mu_c, or the horizon: here actions
are drawn once per trial, normal, folded (the absolute value of a normal) or uniform on [-1, 1], and mu_c is
zero unless given. In `PostServingProblem` a part of the context is read before the arm is chosen.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from unfog import validation
from unfog.features.base import Context, FeatureMap, MapBuilder
from unfog.features.linear import Own, for_all_arms
from unfog.features.per_arm import per_arm
from unfog.maths.arrays import Array, Ints
from unfog.maths.logistic import NODES
from unfog.maths.random import generator
from unfog.validation import InputError, Numbers, check_keywords
from unfog.worlds.composed import (
    LAWS,
    MOST_ACTIONS,
    Arms,
    Binary,
    Composed,
    Noisy,
    Parts,
    Payoff,
    arms,
    described,
)
from unfog.worlds.contexts import UnitFields, Units, assumed_law, check_single_unit, sphere, units
from unfog.worlds.measurement import check_channel, make_measurement
from unfog.worlds.problem import Emission, Truth

MOST_DIM = 1000
CONTEXT_LAWS = ("normal", "sphere")
MAPS = ("linear", "polynomial")
MOST_POST_SERVING_DIM = 500
EXACT = 1e-12  # a covariance in the place of zero
PAPER_SCORE = 18.0  # the size of the largest of all arms' scores in the paper's experiment, which NODES suit
MOST_NODES = 2048
DRAWN = 100_000  # coordinates of actions, to estimate the size of scores


@check_keywords
@dataclass(frozen=True, kw_only=True, eq=False)
class Synthetic(UnitFields, Composed):
    """Gaussian contexts, channel and prior.

    Covariances are a number (times I), a list (the diagonal) or a matrix; means a number or a list. `actions`
    is how many to draw, or the actions themselves, (K, p). `features` is a name ("quadratic", "product",
    "per_arm", "matrix", "own", or "module:name" of a builder) or, from Python, a builder that turns actions
    (..., K, p) into a feature map: `unfog.features.quadrature(phi, dim)` for any function phi. With "own" the
    laws of contexts, noise and bias may be those of one arm, and stand for all. `bias` is the
    mean error of readings as far as it is known: agents are shown readings without it, which is what
    `noisy` is everywhere, and `readings` has them as the device shows them. Of the other
    fields agents are not told: `theta` is theta* where it is given, m numbers, the same in every trial; where
    it is drawn it has `theta_scale` times the spread that they take it to have; with `context_law` "sphere"
    contexts have one length and any direction alike, each arm's for itself where arms have contexts of their
    own, and the mean and the covariance that agents are told. For the channel see worlds/measurement.py.
    There may be several units with biases of their own: worlds/contexts.py.

    With `steady` there is one context for the whole trial, and regret is against who knows it. With
    `missing_arms`, for features of arms' own, all coordinates of an arm get lost together.
    """

    dim: int = 5
    actions: int | Array = 40
    action_law: str = "normal"
    context_mean: Numbers = 0.0
    context_cov: Numbers = 1.0
    noise_cov: Numbers = 1.1
    bias_cov: Numbers = 1.1
    bias: Numbers = 0.0
    prior_mean: Numbers = 0.0
    prior_cov: Numbers = 0.01
    theta: Numbers = ()
    theta_scale: float = 1.0
    context_law: str = "normal"
    features: str | MapBuilder = "quadratic"
    steady: bool = False
    missing_arms: bool = False

    def __post_init__(self) -> None:
        """Check every field, and factorise the covariances."""
        _ = self._parts

    @property
    def plain(self) -> bool:
        """Whether all is as agents are told, the law of contexts and theta drawn from its prior included."""
        return super().plain and not np.size(self.theta) and self.context_law == "normal"

    def readings(self, noisy: Array) -> Array:
        """Noisy contexts (..., d) as the device shows them: with the known bias."""
        xp = noisy.__array_namespace__()
        return noisy + xp.asarray(validation.vector("bias", self.bias, self.dim), dtype=noisy.dtype)

    @abstractmethod
    def _payoff(self) -> Payoff:
        """How a score becomes a reward."""

    @property
    def _has_theta(self) -> bool:
        """Whether theta is given: an empty list stands for one that is drawn."""
        if isinstance(self.theta, np.ndarray):
            return self.theta.size > 0
        return not isinstance(self.theta, list | tuple) or len(self.theta) > 0

    def _theta(self, draws: Mapping[str, Array]) -> Array:
        """theta* as given, or drawn from the prior."""
        if not self._has_theta:
            return super()._theta(draws)
        xp = draws["theta"].__array_namespace__()
        theta = xp.asarray(validation.vector("theta", self.theta, draws["theta"].shape[-1]))
        trials: Array = xp.broadcast_to(theta, draws["theta"].shape).astype(draws["theta"].dtype)
        return trials

    def _compose(self) -> Parts:
        dim = validation.count("dim", self.dim, most=MOST_DIM)
        validation.positive("theta_scale", self.theta_scale)
        validation.vector("bias", self.bias, dim)
        owners, law = self._check_fields()
        arm_set, payoff = arms(self.actions, self.action_law, self.features, dim), self._payoff()
        if self._has_theta:
            validation.vector("theta", self.theta, arm_set.one().size)
        laws: dict[str, Any] = {name: for_all_arms(arm_set.one(), getattr(self, name)) for name in LAWS}
        known = described(dim, arm_set.one(), payoff, self.prior_mean, self.prior_cov, **laws)
        parts = arm_set.shape[0] if self.features == "own" else 1
        contexts = assumed_law(known) if law == "normal" else sphere(known, parts)
        noisy = make_measurement(self, known)._replace(together=self._lost_together(arm_set.one()))
        return Parts(known, contexts, noisy, arm_set, payoff, units=owners)

    def _check_fields(self) -> tuple[Units, str]:
        """The units and the law of contexts, after all checks that need no large arrays."""
        owners = units(self)
        check_single_unit("drift_cov", self.drift_cov, owners.number)
        validation.flag("steady", self.steady)
        check_channel(self)
        return owners, validation.one_of("context_law", self.context_law, CONTEXT_LAWS)

    def _lost_together(self, features: FeatureMap) -> int:
        """How many coordinates are lost together."""
        if not validation.flag("missing_arms", self.missing_arms):
            return 1
        if not isinstance(features, Own):
            raise InputError("missing_arms", True, 'false, or features = "own"')
        return features.size


@check_keywords
@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianProblem(Synthetic):
    """The Gaussian bandit: r = phi(a, c)'theta* + N(0, sigma^2). The paper's first experiment (Fig. 1 left).

    Rewards that are scores plus noise of variance `reward_var`. The reference of specs has every field.

    A share `reward_outliers` of rewards is `reward_outlier` instead, of which agents are not told.

    >>> import unfog
    >>> problem = unfog.GaussianProblem(dim=2, actions=5, noise_cov=[0.5, 2.0])
    >>> result = unfog.run(problem, agents=["unfog", "naive"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()
    [4.4, 8.2]
    """

    reward_var: float = 2.0
    reward_outliers: float = 0.0
    reward_outlier: float = 1e6

    def _payoff(self) -> Noisy:
        share = validation.not_negative("reward_outliers", self.reward_outliers)
        if share >= 1:
            raise InputError("reward_outliers", share, "a share, at least 0 and less than 1")
        outlier = float(validation.vector("reward_outlier", self.reward_outlier, 1)[0])
        return Noisy(validation.positive("reward_var", self.reward_var), share, outlier)


@check_keywords
@dataclass(frozen=True, kw_only=True, eq=False)
class LogisticProblem(Synthetic):
    """The logistic bandit: r ~ Bernoulli(sigmoid(phi(a, c)'theta*)), the paper's second (Fig. 1 centre).

    Rewards of 0 or 1. The fields are those of `Synthetic`, with the paper's values for this bandit.

    >>> import unfog
    >>> problem = unfog.LogisticProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=["unfog", "naive-adf"], rounds=50, trials=20, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()
    [2.8, 4.1]
    """

    noise_cov: Numbers = 2.0
    bias_cov: Numbers = 2.5
    prior_cov: Numbers = 1.0

    def __post_init__(self) -> None:
        """Check every field; take more nodes for mean rewards where scores are larger than the paper's."""
        super().__post_init__()
        size = self._score_size()
        nodes = int(np.ceil(NODES * max(1.0, size / PAPER_SCORE)))
        if nodes > MOST_NODES:
            allowed = (
                f"scores up to {PAPER_SCORE * MOST_NODES / NODES:.0f}: a narrower prior, smaller actions"
            )
            raise InputError("prior_cov", f"scores of {size:.3g}, every reward certain", allowed)
        object.__setattr__(self, "_parts", self._parts._replace(payoff=Binary(nodes)))

    def _payoff(self) -> Binary:
        return Binary()

    def _score_size(self) -> float:
        """The root mean square of the largest score of all arms under the prior, from a few fixed draws."""
        rng = np.random.Generator(np.random.Philox(0))
        number = max(1, min(64, DRAWN // (self.arms() * self.dim)))
        needed = {name: draws for name, draws in self.truth_draws().items() if name != "walk"}
        truth = self.truth({name: draws.of(rng, number) for name, draws in needed.items()})
        context = self._believed(rng.standard_normal((number, self.dim)))
        largest = np.abs(truth.features.at(context).scores(truth.theta)).max(-1)
        return float(np.sqrt(np.mean(largest**2)))

    def _believed(self, normals: Array) -> Array:
        """Contexts that spread as far as beliefs do in the first round, when the bias is still unknown."""
        known = self.knowledge()
        gain = known.context_cov @ np.linalg.inv(known.context_cov + known.noise_cov)
        spread = known.context_cov + 2 * gain @ known.bias_cov @ gain.T
        return known.context_mean + normals @ np.linalg.cholesky(spread).T


class Followed(NamedTuple):
    """The source of contexts (x, z), in which z follows x."""

    mapping: str
    half: float  # h
    weights: Array  # (p, q)  W
    offset: Array  # (q,)  b
    deviation: float  # s

    @property
    def normals(self) -> int:
        """Two make a uniform number, exp(-(x^2 + y^2) / 2); one is for each z."""
        return 2 * self.weights.shape[0] + self.weights.shape[1]

    def draw(self, normals: Array, row: Ints | None) -> Array:  # noqa: ARG002
        """A context."""
        xp, p = normals.__array_namespace__(), self.weights.shape[0]
        uniform = xp.exp(-0.5 * (normals[..., :p] ** 2 + normals[..., p : 2 * p] ** 2))
        x = self.half * (2 * uniform - 1)
        context: Array = xp.concat([x, self.expected(x) + self.deviation * normals[..., 2 * p :]], axis=-1)
        return context

    def expected(self, x: Array) -> Array:
        """The mean of z after x: (..., p) -> (..., q)."""
        xp = x.__array_namespace__()
        f = x if self.mapping == "linear" else x**2
        mean: Array = f @ xp.asarray(self.weights, dtype=x.dtype) + xp.asarray(self.offset, dtype=x.dtype)
        return mean

    def moments(self) -> tuple[Array, Array]:
        """Mean and covariance of (x, z)."""
        square, p = self.half**2 / 3, self.weights.shape[0]
        linear = self.mapping == "linear"
        mean, variance, shared = (0.0, square, square) if linear else (square, 0.8 * square * square, 0.0)
        cross, inner = shared * self.weights, variance * self.weights.T @ self.weights
        residual = self.deviation**2 * np.eye(len(self.offset))
        cov = np.block([[square * np.eye(p), cross], [cross.T, inner + residual]])
        return np.concat([np.zeros(p), mean * self.weights.sum(0) + self.offset]), cov


@check_keywords
@dataclass(frozen=True, kw_only=True, eq=False)
class PostServingProblem(Composed):
    """Contexts of which a part is read before the arm is chosen, and the rest follows it: c = (x, z).

        x uniform on [-h, h]^p,   z = W'f(x) + b + N(0, s^2),   r = c'theta_a + N(0, sigma^2)

    The synthetic problem of *Follow-ups Also Matter: Improving Contextual Bandits via Post-serving Contexts*
    (C. Wang, Z. Ye, Z. Feng, A. Badanidiyuru and H. Xu), with p = 100, five z, ten arms and h = 10. Of its
    three maps from x to z two are here: `linear`, f(x) = x, and `polynomial`, f(x) = x^2. The paper does not
    say how W, b and theta are drawn, nor how large the noise is: all are standard normal here, W and b once
    for all trials.

    A reading holds x, and z is lost (the mask says so). Agents are told the mean and the covariance of c, as
    everywhere. Regret is against one who knows theta, W and b: z is then expected to be W'f(x) + b. With
    `foretold`, z is read too, by agents that would see everything; the yardstick stays.

    The fields: p is `before`, the number of z `after`, h `half`, s^2 `after_var`, sigma^2 `reward_var`.

    Each arm's theta has independent entries of variance `prior_cov`.
    """

    before: int = 100
    after: int = 5
    actions: int = 10
    mapping: str = "polynomial"
    half: float = 10.0
    after_var: float = 1.0
    reward_var: float = 1.0
    prior_cov: float = 1.0
    foretold: bool = False

    def __post_init__(self) -> None:
        """Check every field."""
        _ = self._parts

    def _compose(self) -> Parts:
        p = validation.count("before", self.before, most=MOST_POST_SERVING_DIM)
        q = validation.count("after", self.after, most=MOST_POST_SERVING_DIM)
        arms = validation.count("actions", self.actions, most=MOST_ACTIONS)
        validation.flag("foretold", self.foretold)
        contexts, payoff = self._contexts(p, q), Noisy(validation.positive("reward_var", self.reward_var))
        mean, cov = contexts.moments()
        arm_set = Arms(partial(per_arm, intercept=False), (arms, p + q), np.zeros((arms, p + q)), "normal")
        spread = validation.positive("prior_cov", self.prior_cov)
        laws: dict[str, Numbers] = {"context_mean": mean, "context_cov": cov}
        laws |= {"noise_cov": EXACT, "bias_cov": EXACT}
        blame = "actions", "before", "after"
        known = described(p + q, arm_set.one(), payoff, 0.0, spread, blame=blame, **laws)
        sensor = make_measurement(self, known)
        if not sensor.plain:
            raise InputError("channel", "noise of another kind", "none: what is read is read as it is")
        return Parts(known, contexts, sensor, arm_set, payoff)

    def _contexts(self, p: int, q: int) -> Followed:
        rng = generator(0, 0, "post serving")
        weights, offset = rng.standard_normal((p, q)), rng.standard_normal(q)
        half, mapping = (
            validation.positive("half", self.half),
            validation.one_of("mapping", self.mapping, MAPS),
        )
        return Followed(
            mapping, half, weights, offset, validation.positive("after_var", self.after_var) ** 0.5
        )

    def emit(self, truth: Truth, normals: Array, number: Ints | None = None) -> Emission:
        """A context, of which x is read; the oracle's belief about z is what follows x on average."""
        emission, contexts = super().emit(truth, normals, number), self._parts.contexts
        assert isinstance(contexts, Followed)
        context, p = emission.context, self.before
        xp = context.__array_namespace__()
        x, read = context[..., :p], (xp.arange(context.shape[-1]) < p).astype(context.dtype)
        best = Context(
            xp.concat([x, contexts.expected(x)], axis=-1), xp.diag((1 - read) * contexts.deviation**2)
        )
        if self.foretold:
            return emission._replace(best=best)
        known = xp.asarray(self._parts.known.context_mean, dtype=context.dtype)
        mask = xp.broadcast_to(read, context.shape)
        return emission._replace(noisy=xp.where(mask > 0, emission.noisy, known), mask=mask, best=best)
