"""Underdamped Langevin Thompson sampling."""

from dataclasses import dataclass

import numpy as np

from unfog import validation
from unfog.agents.assemble import Agent
from unfog.agents.choose.thompson import Thompson
from unfog.agents.denoise import Identity
from unfog.agents.rivals.lmcts import Langevin, State
from unfog.agents.rivals.rival import Rival
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array
from unfog.validation import InputError

PAPER = (
    "Zheng, Deng, Moya and Lin, Accelerating Approximate Thompson Sampling with Underdamped Langevin Monte "
    "Carlo"
)


@dataclass(frozen=True, kw_only=True)
class Underdamped(Langevin):
    """Underdamped Langevin Thompson sampling: LMC-TS with a momentum that carries the chain on.

        p <- (1 - g h) p - h U'(theta) + sqrt(2 g h / beta) normals,      theta <- theta + h p

    with the U of LMC-TS (rivals/lmcts.py). H. Zheng, W. Deng, C. Moya and G. Lin, *Accelerating Approximate
    Thompson Sampling with Underdamped Langevin Monte Carlo*, for arms without contexts; for linear bandits E.
    Anand and S. Liaw, *Feel-Good Thompson Sampling for Contextual Bandits: a Markov Chain Monte Carlo
    Showdown*. Sample and momentum go on from where the last round left off.

    U gets steeper with the rounds, so that strides must get shorter: h = sqrt(eta_t), with the eta_t of
    LMC-TS, and g h is `friction` in all rounds. (That is a mass that grows with t, which is how the theory
    has it: a velocity of variance 1 / L for a curvature L.) With friction 1 nothing of the momentum is left
    and this is LMC-TS with steps eta_t, draw for draw; with less the chain can do with fewer steps.

    The equations are sure. Constants are not (low): the authors' code has g = 2 and steps of 0.0001 to 0.01
    for gradients divided by the number of rewards, and an integrator exact in the friction; Anand and Liaw's
    g = 0.1, h = 0.01 and 25 steps. Here friction = 0.63, which is g = 2 with h = sqrt(0.1), as many steps as
    LMC-TS has, and 1 / beta = 0.001 m ln T in all rounds, as there for rewards of 0 or 1.

    Settings
    --------
    Besides those of LMC-TS: `friction` is g h, what a step takes of the momentum.
    """

    temperature: float = 0.001
    cooling: float = 0.0
    friction: float = 0.63

    name = "ulmcts"
    note = "underdamped Langevin Monte Carlo"

    def __post_init__(self) -> None:
        """Check every setting."""
        super().__post_init__()
        if validation.positive("friction", self.friction) > 1:
            raise InputError("friction", self.friction, "a share, more than 0 and at most 1")

    def start(self, known: Knowledge, rounds: int | None) -> State:
        """At rest."""
        return super().start(known, rounds)._replace(more=np.zeros(known.prior_mean.shape[-1]))

    def moved(self, state: State, rate: Array, heat: Array, normals: Array) -> State:
        """The momentum first, then theta by it; a step of length zero leaves both."""
        xp = normals.__array_namespace__()
        stride, due = xp.sqrt(rate), (rate > 0).astype(rate.dtype)
        noise = due * xp.sqrt(2 * self.friction * heat) * normals
        momentum = (1 - due * self.friction) * state.more - stride * self.slope(state, state.theta) + noise
        return state._replace(theta=state.theta + stride * momentum, more=momentum)


RIVALS = [
    Rival(
        Agent(
            "ulmcts",
            Identity(),
            Underdamped(),
            Thompson(),
            binary=Underdamped(zero_one=True),
            summary="Langevin Monte Carlo with a momentum",
            reference=PAPER,
        ),
        told="the horizon",
        sees="noisy contexts, taken for true ones",
        regret="regret_true_context",
        tuned="temperature",
        grid=(1e-7, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
        sure="low",
    )
]
