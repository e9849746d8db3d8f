"""Thompson sampling of Russo and Van Roy, of Agrawal and Goyal, and of Park and Faradonbeh.

**Russo and Van Roy** draw from the posterior as it is, without inflation.

    theta ~ N(mu_t, Sigma_t),    argmax x'theta
    Sigma_t^-1 = Sigma_0^-1 + sum x x' / sigma^2,    mu_t = Sigma_t (Sigma_0^-1 mu_0 + sum x r / sigma^2)

D. Russo and B. Van Roy, *Learning to Optimize via Posterior Sampling*. It must be told the prior of theta and
the variance of rewards, and takes the features of a noisy context for the features. For rewards of 0 or 1 the
exact posterior of their logistic law is the row `pgts`. It has the parts of `naive`, and no setting that says
how much it explores. Known well. The paper's experiments are of Gaussian linear bandits with figures alone.

**Agrawal and Goyal** draw from a Gaussian that is wider.

**Park and Faradonbeh** have contexts that are seen through a channel. H. Park and M. K. S. Faradonbeh,
*Analysis of Thompson Sampling for Partially Observable Contextual Multi-Armed Bandits* (`park-faradonbeh`)
and *Thompson Sampling in Partially Observable Contextual Bandits* (`park-faradonbeh-arms`). Regret is against
one who knows mu and D and sees y: the Bayesian oracle. Rewards of 0 or 1 are taken for any numbers.
"""

from dataclasses import dataclass
from functools import partial
from math import log

from unfog import validation
from unfog.agents.agent import Agent
from unfog.agents.base import Denoiser, Privilege
from unfog.agents.baselines.base import Baseline, Ridge, Sizes, State
from unfog.agents.choose import Thompson
from unfog.agents.denoise import Identity
from unfog.agents.learn import Conjugate
from unfog.channel.knowledge import Knowledge, Shrinkage, known_shrinkage
from unfog.features import Context
from unfog.maths.arrays import Array, matvec

RUSSO_VAN_ROY_PAPER = "Russo and Van Roy, Learning to Optimize via Posterior Sampling"

RUSSO_VAN_ROY = [
    Baseline(
        Agent(
            "rvr-ts",
            Identity(),
            Conjugate(),
            Thompson(),
            summary="draws theta from its posterior, without inflation",
            reference=RUSSO_VAN_ROY_PAPER,
        ),
        needs="the prior of theta, how noisy rewards are",
    )
]


AGRAWAL_GOYAL_PAPER = "Agrawal and Goyal, Thompson Sampling for Contextual Bandits with Linear Payoffs"
NINE = 9.0  # of v_t


@dataclass(frozen=True, kw_only=True)
class Inflated(Ridge):
    """Thompson sampling of Agrawal and Goyal: a draw from a Gaussian that is wider than the posterior.

        B = I + sum x x',    mu = B^-1 sum x r,    theta ~ N(mu, v_t^2 B^-1),
        v_t = R sqrt(9 d ln(t / delta))

    S. Agrawal and N. Goyal, *Thompson Sampling for Contextual Bandits with Linear Payoffs*. d is the number
    of features and t = 1, 2, ... the round, counted by rewards. It must be told R, how noisy rewards are; the
    prior of theta is not used. It takes the features of a noisy context for the features. The formula is
    known well (an earlier version of the paper has 24 / epsilon in the place of 9); delta = 0.05 is ours, as
    the paper leaves it open (medium).

    Settings
    --------
    Those of `Ridge`, `delta`, and `scale`, by which v_t is multiplied.
    """

    delta: float = 0.05
    scale: float = 1.0

    name = "inflated"
    note = "ridge regression, inflated by v_t"

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        validation.share("delta", self.delta)
        validation.not_negative("scale", self.scale)

    def width(self, parameters: Sizes, state: State) -> Array:
        """v_t."""
        xp = state.seen.__array_namespace__()
        growth = xp.log(1 + state.seen) - log(self.delta)
        width: Array = self.scale * parameters.noise * xp.sqrt(NINE * parameters.dim * growth)
        return width


AGRAWAL_GOYAL = [
    Baseline(
        Agent(
            "ag-ts",
            Identity(),
            Inflated(),
            Thompson(),
            binary_learner=Inflated(zero_one=True),
            summary="draws theta from a Gaussian that is wider than the posterior",
            reference=AGRAWAL_GOYAL_PAPER,
        ),
        needs="how noisy rewards are",
        tuned="scale",
        grid=(0.01, 0.03, 0.06, 0.125, 0.25, 1.0),
    )
]


PARK_FARADONBEH_PAPER = (
    "Park and Faradonbeh, Analysis of Thompson Sampling for Partially Observable Contextual Multi-Armed "
    "Bandits"
)
PARK_FARADONBEH_ARMS_PAPER = (
    "Park and Faradonbeh, Thompson Sampling in Partially Observable Contextual Bandits"
)


@dataclass(frozen=True, kw_only=True)
class Centred(Denoiser):
    """The conditional mean of a context that is seen through a channel without bias.

        y = A x + N(0, S_y),  x ~ N(0, S_x),     xhat = D y,   D = (A'S_y^-1 A + S_x^-1)^-1 A'S_y^-1

    H. Park and M. K. S. Faradonbeh, *Analysis of Thompson Sampling for Partially Observable Contextual
    Multi-Armed Bandits*. It must be told A, S_x and S_y, and sees y; here A = I, which is no loss: an A that
    can be inverted is a channel with the noise A^-1 S_y A^-1'. In its model contexts have mean zero and the
    channel has no bias. A mean of zero says that data are centred first, so that with the told mean m of
    contexts xhat = m + D (y - m). It knows of no bias. Known well.

    It has no settings, and remembers nothing.
    """

    name = "centred"
    note = "the mean of the context, were there no bias"

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Shrinkage:
        """The mean, D, and what is left of the context's covariance."""
        return known_shrinkage(known)

    def predict(self, parameters: Shrinkage, state: tuple[()], noisy: Array) -> Context:
        """N(m + D (y - m), (S_y^-1 + S_x^-1)^-1)."""
        centred = noisy - parameters.mean
        return Context(parameters.mean + matvec(parameters.gain, centred), parameters.cov)


@dataclass(frozen=True, kw_only=True)
class Dispersed(Ridge):
    """Park and Faradonbeh: ridge regression on the conditional mean of a context, to draw from.

        B = Sigma^-1 + sum xhat xhat',   mu_hat = B^-1 sum xhat r,   mu ~ N(mu_hat, v^2 B^-1)
        argmax xhat'mu

    H. Park and M. K. S. Faradonbeh, *Analysis of Thompson Sampling for Partially Observable Contextual
    Multi-Armed Bandits* (`park-faradonbeh`). It has v = 1 and any Sigma, here I. Known well. Its rewards are
    linear in x. Where features are not, they are expected under N(xhat, (S_y^-1 + S_x^-1)^-1), which it would
    know: generous. For xhat see `Centred`.

    H. Park and M. K. S. Faradonbeh, *Thompson Sampling in Partially Observable Contextual Bandits*
    (`park-faradonbeh-arms`). Each arm has a parameter mu_i of its own. The mean of a reward given y is
    y'eta_i with eta_i = D'mu_i, so that eta_i is learnt by a regression on y itself and D need not be known:

        B_i = I + sum y y',   eta_hat_i = B_i^-1 sum y r,   eta_i ~ N(eta_hat_i, v^2 B_i^-1),   argmax y'eta_i

    over the rounds of arm i; the map `per_arm` is this. Other maps put phi(a, y) in place of y. That eta_i
    replaces mu_i is known well, that v is 1 is a guess (low): the paper leaves it to the analysis.

    Settings
    --------
    Besides those of a ridge regression: `v`, by which the deviations of a draw are scaled.
    """

    v: float = 1.0

    name = "dispersed"
    note = "ridge regression, its deviations scaled"

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        validation.not_negative("v", self.v)

    def width(self, parameters: Sizes, state: State) -> Array:
        """The same in all rounds."""
        return self.v * super().width(parameters, state)


_row = partial(Agent, learner=Dispersed(), chooser=Thompson(), binary_learner=Dispersed(zero_one=True))
_baseline = partial(
    Baseline, regret="regret", home="baseline-park", tuned="v", grid=(0.02, 0.05, 0.1, 0.3, 1.0, 2.0)
)

PARK_FARADONBEH = [
    _baseline(
        _row(
            "park-faradonbeh",
            Centred(),
            summary="Thompson sampling on the mean of the context, were there no bias",
            reference=PARK_FARADONBEH_PAPER,
        ),
        needs="the mean and covariance of contexts, and the covariance of noise",
        sees="noisy contexts",
    ),
    _baseline(
        _row(
            "park-faradonbeh-arms",
            Identity(),
            summary="Thompson sampling that regresses rewards on the noisy context itself",
            reference=PARK_FARADONBEH_ARMS_PAPER,
        ),
        needs="nothing",
        sees="noisy contexts",
        sure="medium",
    ),
]
