"""SampLinUCB, a rival for arms whose profiles must be learnt."""

from dataclasses import dataclass
from typing import Any

from unfog.agents.assemble import Agent
from unfog.agents.choose.ucb import moments
from unfog.agents.parts import View
from unfog.agents.rivals.averages import Averages
from unfog.agents.rivals.optimism import Optimism
from unfog.agents.rivals.profiles import UNSEEN, Profiles, Reaches
from unfog.agents.rivals.rival import Rival
from unfog.maths.arrays import Array

PAPER = "Lamprier, Gisselbrecht and Gallinari, Profile-Based Bandit with Unknown Profiles"


@dataclass(frozen=True, kw_only=True)
class Reach(Optimism):
    """SampLinUCB: arms have constant profiles, of which noisy samples are seen.

    S. Lamprier, T. Gisselbrecht and P. Gallinari, *Profile-Based Bandit with Unknown Profiles*. Arm i pays
    mu_i'beta and noise. With x_i the mean of the n_i samples of mu_i up to this round, N_i plays and the sum
    s_i of their rewards, all past plays are learnt from again with the x_i of today:

        R_i^2 = R^2 + L^2 S^2 / n_i,    V = l I + sum_i N_i x_i x_i' / R_i^2,
        beta = V^-1 sum_i s_i x_i / R_i^2
        alpha = sqrt(2 ln(det V^.5 det(l I)^-.5 / delta)) + sqrt(l) S
        rho_i = min(L sqrt((2 d / n_i) ln(2 d t^2 / delta)), 2 L)
        argmax_i x_i'beta + rho_i |beta| + alpha (|x_i|_{V^-1} + rho_i / sqrt(l))

    It must be told R, S and L, a bound on the length of samples, here `length`. A sample of arm i is phi(i,
    chat_t): their mean is the expected features at the moments of all readings (rivals/averages.py). With
    `own` features an arm has coordinates of its own, and n_i is how often all of them were read; with other
    maps all arms share the readings. The three deliveries of the paper: samples of all arms; of each with
    some probability, where coordinates get lost; of the arm that is played alone, after it was (`chosen`).

    Known for certain is the setting. The formulas are from memory (medium), that each weight is 1 / R_i^2 and
    not 1 / R_i too: it is what makes alpha right. So are l = 1, delta = 0.05 and L = 1 (low), and that an arm
    without samples is not played, or with `chosen` first of all (medium).

    Settings
    --------
    How much is added of optimism about theta, and of that about profiles; 1 as published.
    """

    name = "reach"
    note = "the largest bound over theta and the profile"
    needs_learner = (Reaches,)

    def bounds(self, view: View) -> Array:
        """The upper bound of the score of every arm that may be chosen: (..., K)."""
        belief: Any = view.belief  # `Reaching`
        mean, variance = moments(view)
        xp, reach = mean.__array_namespace__(), belief.reach
        value = mean + self.alpha * (xp.sqrt(variance) + reach)
        return view.among(xp.where(xp.abs(reach) < UNSEEN, value, reach))


RIVALS = [
    Rival(
        Agent(
            "samplinucb",
            Averages(),
            Profiles(),
            Reach(),
            binary=Profiles(zero_one=True),
            summary="averages samples of profiles that are constant; optimistic about them and theta",
            reference=PAPER,
        ),
        told="the noise of rewards, how long theta is, and how long samples of profiles are at most",
        sees="noisy contexts, taken for samples of one that is constant",
        regret="regret_true_context",
        home="rival-samplinucb",
        tuned="alpha",
        grid=(0.01, 0.03, 0.1, 0.3, 0.6, 1.0),
        sure="medium",
    )
]
