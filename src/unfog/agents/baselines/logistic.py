"""Thompson sampling for rewards of 0 or 1: Laplace-TS and PG-TS.

**Laplace-TS** moves a Gaussian to the mode of each new posterior.

**PG-TS** samples the logistic posterior itself, by Polya-Gamma Gibbs sampling.

    omega_i ~ PG(1, x_i'theta),      V^-1 = sum omega_i x_i x_i' + B^-1,
    theta ~ N(V (sum (r_i - 1/2) x_i + B^-1 b), V)

for the prior N(b, B). B. Dumitrascu, K. Feng and B. E. Engelhardt, *PG-TS: Improved Thompson Sampling for
Logistic Contextual Bandits*. The learner is `PG` of learn/samplers.py, which has no step size and the
posterior as its target. The authors make 100 sweeps before a decision, each round from the prior (medium), or
one from where the last round left off (PG-TS-stream). Here five go on from where the last round left off,
where the chain is close to its target already. It is for rewards of 0 or 1 alone: for Gaussian ones the
posterior has a closed form, and this is the row `rvr-ts`.
"""

from dataclasses import dataclass

from unfog import validation
from unfog.agents.agent import Agent
from unfog.agents.base import Evidence
from unfog.agents.baselines.base import Baseline, EitherKind
from unfog.agents.choose.thompson import Thompson
from unfog.agents.denoise import Identity
from unfog.agents.learn import PG
from unfog.channel.knowledge import Knowledge
from unfog.maths import gaussian
from unfog.maths.arrays import Array, diagonal_matrix
from unfog.maths.gaussian import Belief, Gaussian
from unfog.maths.logistic import sigmoid

LAPLACE_TS_PAPER = "Chapelle and Li, An Empirical Evaluation of Thompson Sampling"
HALVINGS, STEPS = 24, 4  # halvings of the interval of a root, then Newton steps
LEAST = 1e-12  # curvature of the loss, where a reward is all but certain


@dataclass(frozen=True, kw_only=True)
class Sequential(EitherKind):
    """Laplace Thompson sampling: a Gaussian that is moved to the mode of each new posterior.

    With N(w, Q^-1) so far, and z the score x'w of the new mode, a reward of 0 or 1 gives

        w <- argmin (w' - w)'Q(w' - w) / 2 + ln(1 + e^z) - r z = w + Q^-1 x (r - s(z)),      s the sigmoid,
        Q <- Q + s(z) (1 - s(z)) x x',      and arms are chosen by a draw from N(w, alpha^2 Q^-1).

    O. Chapelle and L. Li, *An Empirical Evaluation of Thompson Sampling*, Algorithm 3. They keep the diagonal
    of Q alone, so that learning takes one pass and m numbers; `full` keeps all of it. alpha below one
    explores less, which they found to help (0.25 and 0.5 beside 1). Here every reward is a batch of its own:
    the new mode lies on the line w + c Q^-1 x, and its score is the root of z = x'w + x'Q^-1 x (r - s(z)),
    found by bisection first and then by Newton's steps. For Gaussian rewards the same steps are ridge
    regression; with `full` the exact posterior.

    The first w and Q are those of the prior that agents are told; they had zero and one regularisation
    constant. It takes the features of a noisy context for the features. Known well.

    Settings
    --------
    `alpha` scales draws, `full` keeps all of Q; `zero_one` where rewards are 0 or 1.
    """

    alpha: float = 1.0
    full: bool = False

    name = "laplacets"
    note = "a Gaussian moved to each new mode"

    def __post_init__(self) -> None:
        """Check every setting."""
        super().__post_init__()
        validation.not_negative("alpha", self.alpha)
        validation.flag("full", self.full)

    def setup(self, known: Knowledge) -> Array:
        """The variance of a Gaussian reward; of others nothing."""
        xp = known.prior_mean.__array_namespace__()
        return xp.asarray(0.0 if known.reward_var is None else known.reward_var)

    def start(self, known: Knowledge, rounds: int | None) -> Belief:
        """The prior; of its precision the diagonal alone, unless told."""
        cov = known.prior_cov
        if not self.full:
            xp = cov.__array_namespace__()
            cov = diagonal_matrix(1 / xp.linalg.diagonal(xp.linalg.inv(cov)))
        return gaussian.belief_from_moments(known.prior_mean, cov)

    def belief(self, parameters: Array, state: Belief) -> Belief:
        """N(w, alpha^2 Q^-1)."""
        return type(state)(state.mean, self.alpha * state.root)

    def update(self, parameters: Array, state: Belief, evidence: Evidence, reward: Array) -> Belief:
        """The Gaussian at the new mode, with the curvature of the loss there."""
        row = evidence.row()
        xp = row.__array_namespace__()
        score, spread = xp.vecdot(row, state.centre), state.variance(row)
        if self.zero_one:
            chance = sigmoid(_root(score, spread, reward))
            error, curvature = reward - chance, xp.maximum(chance * (1 - chance), LEAST)
        else:
            error, curvature = (reward - score) / (parameters + spread), 1 / parameters + 0 * score
        if self.full:
            # A measurement of this value and precision moves the mean by Q^-1 x error, and updates Q.
            return state.condition(row, score + error * (spread + 1 / curvature), 1 / curvature)
        return _diagonal(state, row, error, curvature)


def _root(score: Array, spread: Array, reward: Array) -> Array:
    """The z that is score + spread (reward - sigmoid(z)), (...,)."""
    xp = score.__array_namespace__()
    low, high = score + spread * (reward - 1), score + spread * reward
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        above = middle > score + spread * (reward - sigmoid(middle))
        low, high = xp.where(above, low, middle), xp.where(above, middle, high)
    root = (low + high) / 2
    for _ in range(STEPS):
        chance = sigmoid(root)
        root = root - (root - score - spread * (reward - chance)) / (1 + spread * chance * (1 - chance))
    return root


def _diagonal(state: Belief, row: Array, error: Array, curvature: Array) -> Belief:
    """The mean moved by Q^-1 x error, and the diagonal of Q plus that of curvature x x'."""
    xp = row.__array_namespace__()
    deviations = xp.linalg.diagonal(state.root)  # (..., m), or (..., B, k) in blocks
    inner = deviations.shape[-1:] if isinstance(state, Gaussian) else deviations.shape[-2:]
    row = row.reshape(*row.shape[:-1], *inner)
    error, curvature = (x.reshape(*x.shape, *[1] * len(inner)) for x in (error, curvature))
    mean = state.mean + deviations**2 * row * error
    narrower = deviations / xp.sqrt(1 + (deviations * row) ** 2 * curvature)
    return type(state)(mean, diagonal_matrix(narrower))


LAPLACE_TS = [
    Baseline(
        Agent(
            "laplacets",
            Identity(),
            Sequential(),
            Thompson(),
            binary_learner=Sequential(zero_one=True),
            summary="a Gaussian with a diagonal precision, moved to each new mode",
            reference=LAPLACE_TS_PAPER,
        ),
        needs="the prior of theta; the variance of rewards, where they are Gaussian",
        tuned="alpha",
        grid=(0.03, 0.06, 0.12, 0.25, 0.5, 1.0),
    )
]


PGTS_PAPER = (
    "Dumitrascu, Feng and Engelhardt, PG-TS: Improved Thompson Sampling for Logistic Contextual Bandits"
)

PGTS = [
    Baseline(
        Agent(
            "pgts",
            Identity(),
            PG(),
            Thompson(),
            summary="samples the posterior itself by Gibbs sampling, for rewards of 0 or 1",
            reference=PGTS_PAPER,
        ),
        needs="the prior of theta",
    )
]
