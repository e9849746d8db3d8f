"""A learner to start from, with a requirement of its own.

The docstring of its class says what it believes, with the formula and its reference (CONTRIBUTING.md).
"""

from dataclasses import dataclass

from unfog import validation
from unfog.agents.base import Evidence, Learner
from unfog.agents.learn.conjugate import reward_variance
from unfog.channel.knowledge import Knowledge
from unfog.features import FeatureMap
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Gaussian
from unfog.validation import InputError


@dataclass(frozen=True, kw_only=True)
class Skeleton(Learner):
    """The Gaussian posterior that forgets: its belief gets a little wider before every reward.

        Sigma <- (1 + widen) Sigma,    then conditioned on r = x'theta + N(0, sigma^2)
        Sigma: the covariance of theta

    It refuses priors in blocks, to show how a learner refuses a problem. Here stands its reference.

    Settings
    --------
    `widen` is by how much the variance grows each time.
    """

    widen: float = 0.001

    name = "skeleton"
    note = "a Gaussian posterior that forgets"
    rewards = "gaussian"  # or "bernoulli"
    # needs = (Rewinds,)            abilities that the denoiser beside it must have: agents/base.py
    # needs_features = (Liftable,)  and the feature map

    def __post_init__(self) -> None:
        """Refuse bad settings by name."""
        validation.not_negative("widen", self.widen)

    def check(self, known: Knowledge, features: FeatureMap) -> None:
        """Refuse a problem that it is not for, before anything runs."""
        super().check(known, features)
        if known.prior_cov.ndim == 3:
            raise InputError("learner", f"{self.name!r} with a prior in blocks", "a prior in one piece")

    def setup(self, known: Knowledge) -> Array:
        """What depends on the problem alone."""
        return reward_variance(known)

    def start(self, known: Knowledge, rounds: int | None) -> Gaussian:
        """The prior; `rounds` is for learners that keep all rounds."""
        return gaussian.from_moments(known.prior_mean, known.prior_cov)

    def belief(self, parameters: Array, state: Gaussian) -> Gaussian:
        """What a chooser sees."""
        return state

    def update(self, parameters: Array, state: Gaussian, evidence: Evidence, reward: Array) -> Gaussian:
        """After a reward (...,): the evidence gives the row, its covariance and more, when asked."""
        wider = Gaussian(state.mean, state.root * (1 + self.widen) ** 0.5)
        return wider.condition(evidence.row(), reward, parameters)
