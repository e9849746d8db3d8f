"""What the synthetic bandits share: c ~ N(mu_c, Sigma_c), chat = c + gamma* + n, scores phi(a, c)'theta*.

The paper does not say how actions are drawn, mu_c, or the horizon: here actions are drawn once per trial,
normal, folded (the absolute value of a normal) or uniform on [-1, 1], and mu_c is zero unless given. What a
score pays is for the worlds built on this one: worlds/gaussian.py, worlds/logistic.py.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from unfog import validation
from unfog.features.base import FeatureMap, MapBuilder
from unfog.features.linear import Own, of_all_arms
from unfog.features.registry import ALIASES
from unfog.maths.arrays import Array
from unfog.validation import InputError, Numbers
from unfog.worlds.arms import arms
from unfog.worlds.channel import channel, check
from unfog.worlds.composed import LAWS, Composed, Parts, described
from unfog.worlds.contexts import as_told, sphere
from unfog.worlds.payoffs import Payoff
from unfog.worlds.units import UnitFields, Units, refuse_shared, units

MOST_DIM = 1000
CONTEXT_LAWS = ("normal", "sphere")


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
    own, and the mean and the covariance that agents are told. For the channel see worlds/channel.py. There
    may be several units with biases of their own: worlds/units.py.

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
        if isinstance(self.features, str):  # a stored spec says the name that is used now
            object.__setattr__(self, "features", ALIASES.get(self.features, self.features))
        _ = self._parts

    @property
    def plain(self) -> bool:
        """Whether all is as agents are told, the law of contexts and theta drawn from its prior included."""
        return super().plain and not np.size(self.theta) and self.context_law == "normal"

    def readings(self, noisy: Array) -> Array:
        """Noisy contexts (..., d) as the device shows them: with the bias that is known."""
        xp = noisy.__array_namespace__()
        return noisy + xp.asarray(validation.vector("bias", self.bias, self.dim), dtype=noisy.dtype)

    @abstractmethod
    def _payoff(self) -> Payoff:
        """What a score pays."""

    @property
    def _told_theta(self) -> bool:
        """Whether theta is given: an empty list stands for one that is drawn."""
        if isinstance(self.theta, np.ndarray):
            return self.theta.size > 0
        return not isinstance(self.theta, list | tuple) or len(self.theta) > 0

    def _theta(self, draws: Mapping[str, Array]) -> Array:
        """As given, or from the prior."""
        if not self._told_theta:
            return super()._theta(draws)
        xp = draws["theta"].__array_namespace__()
        given = xp.asarray(validation.vector("theta", self.theta, draws["theta"].shape[-1]))
        found: Array = xp.broadcast_to(given, draws["theta"].shape).astype(draws["theta"].dtype)
        return found

    def _compose(self) -> Parts:
        dim = validation.count("dim", self.dim, most=MOST_DIM)
        validation.positive("theta_scale", self.theta_scale)
        validation.vector("bias", self.bias, dim)
        owners, law = self._checked()
        found, payoff = arms(self.actions, self.action_law, self.features, dim), self._payoff()
        if self._told_theta:
            validation.vector("theta", self.theta, found.one().size)
        laws: dict[str, Any] = {name: of_all_arms(found.one(), getattr(self, name)) for name in LAWS}
        known = described(dim, found.one(), payoff, self.prior_mean, self.prior_cov, **laws)
        parts = found.shape[0] if self.features == "own" else 1
        contexts = as_told(known) if law == "normal" else sphere(known, parts)
        noisy = channel(self, known)._replace(together=self._together(found.one()))
        return Parts(known, contexts, noisy, found, payoff, units=owners)

    def _checked(self) -> tuple[Units, str]:
        """The units and the law of contexts; what needs nothing large to be refused is refused by now."""
        owners = units(self)
        refuse_shared("drift_cov", self.drift_cov, owners.number)
        validation.flag("steady", self.steady)
        check(self)
        return owners, validation.one_of("context_law", self.context_law, CONTEXT_LAWS)

    def _together(self, features: FeatureMap) -> int:
        """How many coordinates get lost together."""
        if not validation.flag("missing_arms", self.missing_arms):
            return 1
        if not isinstance(features, Own):
            raise InputError("missing_arms", True, 'false, or features = "own"')
        return features.size
