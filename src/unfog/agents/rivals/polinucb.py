"""poLinUCB, a rival that sees a part of the context only afterwards."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unfog.agents.assemble import Agent
from unfog.agents.evidence import Evidence
from unfog.agents.parts import Bounds, State
from unfog.agents.rivals.joint_optimism import JointOptimism
from unfog.agents.rivals.regressed import Regressed, check_chance
from unfog.agents.rivals.ridge import Ridge, Sizes, sizes
from unfog.agents.rivals.rival import Rival
from unfog.channel.knowledge import Knowledge
from unfog.features.base import Sloped
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Belief, Gaussian

PAPER = (
    "Wang, Ye, Feng, Badanidiyuru and Xu, Follow-ups Also Matter: Improving Contextual Bandits via "
    "Post-serving Contexts"
)


class Counted(NamedTuple):
    """An ellipsoid without its width, or one for each arm."""

    ball: Belief  # N(w_hat, A^-1)
    seen: Array  # (...,), or (..., K) where arms have blocks: n
    longest: Array  # (...,)  L_u^2 so far


@dataclass(frozen=True, kw_only=True)
class Served(Ridge):
    """poLinUCB: contexts that are seen after the arm is chosen, and optimism about them too.

        r = u'w + noise,   u = (x, z),   z = phi(x) + noise seen after serving,   x before it
        A = l I + sum u u',   w_hat = A^-1 sum u r,   |w - w_hat|_A <= zeta
        zeta = sqrt(l) S + R sqrt(d_u ln((1 + n L_u^2 / l) / delta)),    |z - phi_hat(x)| <= e_t
        argmax_a max_{z, w} (x, z)'w

    C. Wang, Z. Ye, Z. Feng, A. Badanidiyuru and H. Xu, *Follow-ups Also Matter: Improving Contextual Bandits
    via Post-serving Contexts* (Algorithm 1, its equations 3 to 6). The formulas are known well. For each arm
    there is a w of its own, n its rounds (the map `per_arm`; sections 6.2 and 6.3 have one w for all and
    features of z, which are the other maps here). The paper has 2 for S, since it takes |theta_a| and
    |beta_a| to be at most 1: here S is how long theta is, as its prior has it. No bound L_u is told: the
    longest row so far stands for it. C_0 of e_t (rivals/regressed.py) is "some universal constant", and delta
    is not said: 1 and 0.05 are ours (low). So is how the maximum is found (rivals/joint_optimism.py), and
    that `alpha` scales both radii: with those of the theorem, alpha = 1, it loses to LinUCB at its home, with
    a tenth of them the order of its paper's curves holds there. So the row has a tenth.

    Here x is the noisy context and z the true one, which it is shown after each reward. It learns theta from
    true features alone, since rewards hang on them: with x beside them it would learn more numbers than there
    are. Regret is against one who knows phi(x) = E[z | x]: the Bayesian oracle. Its features need slopes in
    the context, which maps by quadrature do not have. Rewards of 0 or 1 are taken for any numbers.

    Settings
    --------
    Besides those of a ridge regression: `delta`, the chance that an ellipsoid is wrong.
    """

    delta: float = 0.05

    name = "served"
    note = "ridge regression, its width by the number of rounds"
    needs = (Bounds,)
    needs_features = (Sloped,)

    def __post_init__(self) -> None:
        """Check the settings."""
        super().__post_init__()
        check_chance("delta", self.delta)

    def setup(self, known: Knowledge) -> Sizes:
        """R; S and d_u, those of one arm where the prior has blocks."""
        if known.prior_cov.ndim < 3:
            return sizes(known)
        mean = known.prior_mean.reshape(len(known.prior_cov), -1)
        spread = np.trace(known.prior_cov, axis1=-2, axis2=-1)
        return Sizes(sizes(known).noise, np.sqrt(np.vecdot(mean, mean) + spread), mean.shape[-1])

    def start(self, known: Knowledge, rounds: int | None) -> Counted:  # type: ignore[override]
        """Before the first reward."""
        ball = super().start(known, rounds).ball
        return Counted(ball, np.zeros(known.prior_cov.shape[:-2]), np.zeros(()))

    def width(self, parameters: Sizes, state: State) -> Array:
        """Zeta: (...,), or (..., K) where arms have blocks."""
        xp = state.seen.__array_namespace__()
        longest = state.longest[..., None] if _split(state) else state.longest
        volume = xp.log((1 + state.seen * longest / self.ridge) / self.delta)
        found: Array = self.ridge**0.5 * parameters.norm + parameters.noise * xp.sqrt(parameters.dim * volume)
        return found

    def update(self, parameters: Sizes, state: State, evidence: Evidence, reward: Array) -> Counted:  # type: ignore[override]
        """With one more row and its reward."""
        row = evidence.row()
        xp = row.__array_namespace__()
        one = xp.ones((), dtype=row.dtype)
        longest = xp.maximum(state.longest, xp.vecdot(row, row))
        arms = xp.arange(state.seen.shape[-1]) == evidence.arm[..., None] if _split(state) else one
        seen = state.seen + xp.asarray(arms, dtype=row.dtype)
        return Counted(state.ball.condition(row, reward, one), seen, longest)


def _split(state: State) -> bool:
    """Whether arms have blocks of their own."""
    return not isinstance(state.ball, Gaussian)


RIVALS = [
    Rival(
        Agent(
            "polinucb",
            Regressed(),
            Served(),
            JointOptimism(alpha=0.1),
            binary=Served(zero_one=True),
            summary="learns which true contexts follow noisy ones; optimism about them and about theta",
            reference=PAPER,
        ),
        told="how noisy rewards are, and how long theta is",
        sees="noisy contexts, and true ones after the reward",
        regret="regret",
        home="rival-polinucb",
        tuned="alpha",
        grid=(0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
        sure="medium",
    )
]
