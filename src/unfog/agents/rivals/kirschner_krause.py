"""UCB with context distributions."""

from dataclasses import dataclass
from functools import partial
from math import log, sqrt

from unfog import validation
from unfog.agents.assemble import Agent
from unfog.agents.denoise import Exact, Identity
from unfog.agents.parts import Denoiser
from unfog.agents.rivals.optimism import Optimism
from unfog.agents.rivals.ridge import Ridge, Sizes, State
from unfog.agents.rivals.rival import Rival
from unfog.agents.rivals.told_law import ToldLaw
from unfog.maths.arrays import Array

PAPER = "Kirschner and Krause, Stochastic Bandits with Context Distributions"


@dataclass(frozen=True, kw_only=True)
class ContextRidge(Ridge):
    """UCB with context distributions: a round tells the law mu_t of its context, and the context stays
    hidden.

        psi_t(a) = E[phi(a, c)],  c ~ mu_t        V = I + sum x x',    theta = V^-1 sum x r
        argmax psi_t(a)'theta + beta_t |psi_t(a)|_{V^-1},    beta_t = rho sqrt(ln det V - 2 ln delta) + 1

        kk-hidden     x = psi_t(a_t),
        rho = sqrt(4 + sigma^2): not knowing the context adds to the noise
        kk-observed   x = phi(a_t, c_t),
        rho = sigma: c_t is shown after its reward; psi_t scores all the same
        kk-sampled    psi_t is an average over l draws from mu_t, in scores and in x; l = 10, or 100
        kk-exact      the context is seen before the arm is chosen: UCB as it is without context distributions
        kk-learnt     kk-hidden that is told no law: mu_t is what `unfog` believes of the context

    J. Kirschner and A. Krause, *Stochastic Bandits with Context Distributions*. Formulas, V = I and delta =
    0.05 are those of the authors' code. sigma is the deviation of rewards, which it must be told; that theta
    is no longer than one, and that rewards differ from psi'theta by two at most on account of the context, is
    assumed. The shipped runs put constants in place of beta_t, which is what `beta` is for: 10 where the
    context is hidden and 2 elsewhere on their synthetic problem, 1 on their data. Rewards of 0 or 1 are not
    in the paper: there rho = 1/2 whatever is hidden, since such a reward has no heavier tails.

    The kernel version of the paper is this one for a map of finitely many features. kk-exact takes the noisy
    context for the true one, and is what its name says where there is no noise.

    Settings
    --------
    `hidden` where rows are expected features; `beta` in place of beta_t, unless it is 0.
    """

    delta: float = 0.05
    beta: float = 0.0
    hidden: bool = True

    name = "context_ridge"
    note = "ridge regression on the expected features"

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        validation.not_negative("beta", self.beta)
        validation.flag("hidden", self.hidden)
        validation.share("delta", self.delta)

    def width(self, parameters: Sizes, state: State) -> Array:
        """beta_t."""
        xp = state.volume.__array_namespace__()
        if self.beta:
            constant: Array = xp.full_like(state.volume, self.beta)
            return constant
        doubled = self.hidden and not self.zero_one
        rho = xp.sqrt(4 + parameters.noise**2) if doubled else parameters.noise
        found: Array = rho * xp.sqrt(state.volume - 2 * log(self.delta)) + sqrt(self.ridge)
        return found


def _agent(name: str, denoiser: Denoiser, summary: str, *, hidden: bool = True) -> Agent:
    learner = ContextRidge(hidden=hidden)
    binary = ContextRidge(hidden=hidden, zero_one=True)
    return Agent(name, denoiser, learner, Optimism(), binary=binary, summary=summary, reference=PAPER)


_rival = partial(Rival, regret="regret", home="rival-kk", tuned="beta")
LAW = "the law of every context, sigma"
HIDDEN, SEEN = (0.1, 0.3, 1.0, 2.0, 5.0, 10.0), (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)

RIVALS = [
    _rival(
        _agent("kk-hidden", ToldLaw(), "ridge on features expected under the law of each context, UCB"),
        told=LAW,
        sees="the law of each context",
        grid=HIDDEN,
    ),
    _rival(
        _agent(
            "kk-observed",
            ToldLaw(pairs=True),
            "kk-hidden that is shown the context after its reward, and learns from it",
            hidden=False,
        ),
        told=LAW,
        sees="the law of each context, and afterwards the context",
        grid=SEEN,
    ),
    _rival(
        _agent("kk-sampled", ToldLaw(samples=10), "kk-hidden that knows the law of a context by ten draws"),
        told=LAW,
        sees="draws from the law of each context",
        grid=HIDDEN,
    ),
    _rival(
        _agent("kk-exact", Identity(), "UCB that takes what it sees for the context", hidden=False),
        told="sigma",
        sees="noisy contexts, taken for true ones",
        grid=SEEN,
    )._replace(regret="regret_true_context"),
    _rival(
        _agent("kk-learnt", Exact(), "kk-hidden that learns the channel instead of being told its bias"),
        told="the laws of contexts and channel, sigma",
        sees="noisy contexts",
        grid=HIDDEN,
    ),
]
