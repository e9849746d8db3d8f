"""Thompson sampling by Langevin Monte Carlo: LMC-TS, with a momentum (underdamped), and feel-good."""

from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import numpy as np

from unfog import validation
from unfog.agents.agent import Agent
from unfog.agents.base import Evidence, RunsChain
from unfog.agents.baselines.base import Baseline, EitherKind
from unfog.agents.choose.greedy import best
from unfog.agents.choose.thompson import Thompson
from unfog.agents.denoise import Identity
from unfog.agents.learn import logistic
from unfog.agents.learn.logistic import MOST_STEPS, History, logits
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array, matvec
from unfog.maths.gaussian import Gaussian, certain
from unfog.maths.logistic import sigmoid
from unfog.validation import InputError

LMCTS_PAPER = (
    "Xu, Zheng, Mazumdar, Azizzadenesheli and Anandkumar, Langevin Monte Carlo for Contextual Bandits"
)


class Sums(NamedTuple):
    """All that squared errors need of the past."""

    squares: Array  # (..., m, m)  sum x x'
    products: Array  # (..., m)  sum x r


class State(NamedTuple):
    """The past, and where the chain is."""

    past: Sums | History
    theta: Array  # (..., m)
    seen: Array  # ()  rewards
    taken: Array  # ()  steps since the last one
    power: Array  # (...,)  sum |x|^2
    scale: Array  # (...,)  what the first step's length is divided by
    more: Any = ()  # what subclasses keep besides


@dataclass(frozen=True, kw_only=True)
class Langevin(EitherKind, RunsChain):
    """LMC-TS: a chain that walks down the loss of all past rounds with noise added, and the arm best for it.

        U(theta) = sum (x'theta - r)^2 + l |theta|^2           Gaussian rewards
        U(theta) = sum (ln(1 + e^z) - r z) + l |theta|^2       rewards of 0 or 1, z = x'theta

        theta <- theta - eta_t U'(theta) + sqrt(2 eta_t / beta_t) normals
        min(t, 100) times after round t,

    from where the last round left off; eta_t = eta_0 / t and 1 / beta = `temperature` m ln T. P. Xu, H.
    Zheng, E. V. Mazumdar, K. Azizzadenesheli and A. Anandkumar, *Langevin Monte Carlo for Contextual
    Bandits*. All of it is as in the authors' code, and sure, with four remarks.

    - Their noise keeps the scale of the first step, eta_t sqrt(2 / (beta eta_0)): the temperature falls with
      the steps, 1 / beta_t = (eta_t / eta_0)^cooling / beta with cooling 1. Their paper has cooling 0.
    - Their steps get shorter every 20 rounds only (`hold`), every round where arms are always the same. Here
      every round does: a first step that is held runs off where features are long.
    - Features have length one there. Here t is sum |x|^2, the same where they have, and one at least: so the
      chain cannot run off. With cooling 0 and l = 0 it then walks as it would with features divided by their
      root mean square; else the noise or the ridge weighs otherwise.
    - 1 / beta = 1e-7 m ln T is theirs for Gaussian rewards and arms that change, 1e-3 for rewards of 0 or 1
      and for arms that are always the same. exp(-beta U) is the posterior with 1 / beta = 2 sigma^2 for
      Gaussian rewards, with 1 for the others: both are far colder.

    The first theta has the spread of theirs, 1 / sqrt(3 m). Nothing is taken from the prior that agents are
    told. For Gaussian rewards the sums of x x' and x r are all that a step needs, and a round costs the same
    however many there were; rewards of 0 or 1 need all past rounds. Steps that are not taken in early rounds
    have length zero. It takes the features of a noisy context for the features.

    Settings
    --------
    `rate` is eta_0, `ridge` l, `horizon` T; `zero_one` where rewards are 0 or 1.
    """

    temperature: float = 1e-7
    steps: int = 100
    rate: float = 0.1
    ridge: float = 1.0
    cooling: float = 1.0
    hold: int = 1
    horizon: int = 1000

    name = "lmcts"
    note = "Langevin Monte Carlo with a schedule"
    dense = True

    def __post_init__(self) -> None:
        """Check every setting."""
        super().__post_init__()
        validation.not_negative("temperature", self.temperature)
        validation.count("steps", self.steps, most=MOST_STEPS)
        validation.positive("rate", self.rate)
        validation.not_negative("ridge", self.ridge)
        validation.not_negative("cooling", self.cooling)
        validation.count("hold", self.hold)
        validation.count("horizon", self.horizon)

    def normals(self, known: Knowledge, seen: int) -> int:
        """One for each coordinate of theta."""
        return known.prior_mean.shape[-1]

    def work(self, known: Knowledge) -> int:
        """The logit and the gradient, and a sigmoid; with sums next to nothing."""
        return 2 * known.prior_mean.shape[-1] + 4 if self.zero_one else 1

    def memory_size(self, known: Knowledge, rounds: int) -> int:
        """The past, twice over while a round is added, and the normals of a decision."""
        m = known.prior_mean.shape[-1]
        return 4 * m * (rounds if self.zero_one else m) + 2 * m * self.steps

    def setup(self, known: Knowledge) -> tuple[()]:
        """Nothing."""
        return ()

    def start(self, known: Knowledge, rounds: int | None) -> State:
        """A chain at zero, whose very first step draws the first theta."""
        m = known.prior_mean.shape[-1]
        past = logistic.blank(known, rounds, False) if self.zero_one else Sums(np.zeros((m, m)), np.zeros(m))
        zero = np.zeros(())
        return State(past, np.zeros(m), zero, zero, zero, zero + 1)

    def step(self, parameters: tuple[()], state: State, normals: Array) -> State:
        """One step down U, with noise; of length zero where enough were taken."""
        xp = normals.__array_namespace__()
        size = normals.shape[-1]
        rate = self.rate / state.scale * self._is_due(state)
        heat = self.temperature * size * log(self.horizon) / state.scale**self.cooling
        after = self.moved(state, rate[..., None], heat[..., None], normals)
        # Before the first reward nothing is due; the first theta is drawn then.
        first = (state.seen == 0) & (state.taken == 0)
        theta = xp.where(first, normals / (3 * size) ** 0.5, after.theta)
        return after._replace(theta=theta, taken=state.taken + 1)

    def moved(self, state: State, rate: Array, heat: Array, normals: Array) -> State:
        """After a step of this length at this temperature, (..., 1) each."""
        xp = normals.__array_namespace__()
        theta = state.theta - rate * self.slope(state, state.theta) + xp.sqrt(2 * rate * heat) * normals
        return state._replace(theta=theta)

    def slope(self, state: State, theta: Array) -> Array:
        """U'(theta), (..., m)."""
        past, ridge_slope = state.past, 2 * self.ridge * theta
        if isinstance(past, Sums):
            return ridge_slope + 2 * (matvec(past.squares, theta) - past.products)
        fit = logits(past, theta)
        return ridge_slope + matvec(fit.rows, sigmoid(fit.value) - past.rewards)

    def _is_due(self, state: State) -> Array:
        """One where a step is due, else zero."""
        xp = state.seen.__array_namespace__()
        due: Array = (state.taken < xp.minimum(state.seen, self.steps)).astype(state.seen.dtype)
        return due

    def belief(self, parameters: tuple[()], state: State) -> Gaussian:
        """The belief that is certain of the current sample."""
        return certain(state.theta)

    def update(self, parameters: tuple[()], state: State, evidence: Evidence, reward: Array) -> State:
        """Remember the round, and what it makes of the next steps' length."""
        row, past = evidence.row(), state.past
        xp = row.__array_namespace__()
        seen, power = state.seen + 1, state.power + xp.vecdot(row, row)
        scale = xp.where(seen % self.hold == 0, xp.maximum(power, 1.0), state.scale)
        if isinstance(past, Sums):
            squares = past.squares + row[..., :, None] * row[..., None, :]
            new: Sums | History = Sums(squares, past.products + row * reward[..., None])
        else:
            new = logistic.add(past, evidence, reward)
        return State(new, state.theta, seen, state.taken * 0, power, scale, state.more)


LMCTS = [
    Baseline(
        Agent(
            "lmcts",
            Identity(),
            Langevin(),
            Thompson(),
            binary_learner=Langevin(zero_one=True, temperature=0.001),
            summary="Langevin Monte Carlo, with the steps and temperatures of its authors",
            reference=LMCTS_PAPER,
        ),
        needs="the horizon",
        home="baseline-lmcts",
        tuned="temperature",
        grid=(1e-7, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
    )
]


UNDERDAMPED_PAPER = (
    "Zheng, Deng, Moya and Lin, Accelerating Approximate Thompson Sampling with Underdamped Langevin Monte "
    "Carlo"
)


@dataclass(frozen=True, kw_only=True)
class Underdamped(Langevin):
    """Underdamped Langevin Thompson sampling: LMC-TS with a momentum that carries the chain on.

        p <- (1 - g h) p - h U'(theta) + sqrt(2 g h / beta) normals,      theta <- theta + h p

    with the U of LMC-TS (`Langevin`). H. Zheng, W. Deng, C. Moya and G. Lin, *Accelerating Approximate
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
        """A chain with zero momentum."""
        return super().start(known, rounds)._replace(more=np.zeros(known.prior_mean.shape[-1]))

    def moved(self, state: State, rate: Array, heat: Array, normals: Array) -> State:
        """The momentum first, then theta by it; a step of length zero leaves both."""
        xp = normals.__array_namespace__()
        stride, due = xp.sqrt(rate), (rate > 0).astype(rate.dtype)
        noise = due * xp.sqrt(2 * self.friction * heat) * normals
        momentum = (1 - due * self.friction) * state.more - stride * self.slope(state, state.theta) + noise
        return state._replace(theta=state.theta + stride * momentum, more=momentum)


UNDERDAMPED = [
    Baseline(
        Agent(
            "ulmcts",
            Identity(),
            Underdamped(),
            Thompson(),
            binary_learner=Underdamped(zero_one=True),
            summary="Langevin Monte Carlo with a momentum",
            reference=UNDERDAMPED_PAPER,
        ),
        needs="the horizon",
        tuned="temperature",
        grid=(1e-7, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
        sure="low",
    )
]


FEELGOOD_PAPER = (
    "Zhang, Feel-Good Thompson Sampling for Contextual Bandits and Reinforcement Learning; Anand and Liaw, "
    "Feel-Good Thompson Sampling for Contextual Bandits: a Markov Chain Monte Carlo Showdown"
)
USUAL_ARMS = 40  # for estimates of memory and time, which are needed before the arms are known


class SeenRounds(NamedTuple):
    """The features of all arms of all past rounds; zeros, which say nothing, for one that has not been."""

    rows: Array  # (..., n, K, m); K is one before the first round
    slots: Array | None  # (n,)  0, 1, ..., n - 1 in a history of fixed size; None in one that grows


@dataclass(frozen=True, kw_only=True)
class FeelGood(Langevin):
    """Feel-good Langevin Thompson sampling: LMC-TS that prefers a theta under which past rounds promised
    much.

        U(theta) = sum (x'theta - r)^2 + l |theta|^2 - lambda sum_s min(b, max_a phi_s(a)'theta)

    with the logistic loss in place of squares for rewards of 0 or 1. T. Zhang, *Feel-Good Thompson Sampling
    for Contextual Bandits and Reinforcement Learning*; with a Langevin chain E. Anand and S. Liaw, *Feel-Good
    Thompson Sampling for Contextual Bandits: a Markov Chain Monte Carlo Showdown*, whose code has these
    defaults: lambda = 0.5, b = 1000, l = 0.01, 25 steps, eta_t = 0.1 / t and 1 / beta = 0.001 m ln T in all
    rounds. With lambda = 0 it is LMC-TS with these settings (`Langevin`, whose remarks on the length of
    features hold here). Three things differ from that code: the first theta has a spread of 1 / sqrt(3 m) and
    not of one, as many steps as there were rounds are taken in the first 25, and theirs have length 0.1 / (n
    + 1) after n rewards, where ours have 0.1 / n.

    Every step looks at all arms of all past rounds: m numbers for each of K arms are kept a round, K m n in
    all, and a round costs 25 K m n multiplications. That is hundreds of times LMC-TS for Gaussian rewards,
    which keeps sums alone. The maximum is over scores, for rewards of 0 or 1 too (medium: their code for
    these is not complete). It takes the features of a noisy context for the features.

    Settings
    --------
    Besides those of LMC-TS: `optimism` is lambda, `cap` is b.
    """

    temperature: float = 0.001
    steps: int = 25
    ridge: float = 0.01
    cooling: float = 0.0
    optimism: float = 0.5
    cap: float = 1000.0

    name = "feelgood"
    note = "Langevin Monte Carlo that feels good"

    def __post_init__(self) -> None:
        """Check every setting."""
        super().__post_init__()
        validation.not_negative("optimism", self.optimism)
        validation.positive("cap", self.cap)

    def work(self, known: Knowledge) -> int:
        """The scores of all arms, as many as there usually are."""
        return super().work(known) + 2 * USUAL_ARMS * known.prior_mean.shape[-1]

    def memory_size(self, known: Knowledge, rounds: int) -> int:
        """All arms of all rounds, as many as there usually are."""
        return super().memory_size(known, rounds) + 4 * USUAL_ARMS * known.prior_mean.shape[-1] * rounds

    def start(self, known: Knowledge, rounds: int | None) -> State:
        """A history of one arm a round, which grows to all arms in the first round."""
        state, m = super().start(known, rounds), known.prior_mean.shape[-1]
        slots = None if rounds is None else np.arange(rounds, dtype=np.float64)
        return state._replace(more=SeenRounds(np.zeros((rounds or 0, 1, m)), slots))

    def slope(self, state: State, theta: Array) -> Array:
        """U'(theta), with the features of each round's best arm, where that is below the cap."""
        xp, rows = theta.__array_namespace__(), state.more.rows
        scores = (rows @ theta[..., None, :, None])[..., 0]
        is_below_cap = (scores.max(-1) < self.cap).astype(theta.dtype)
        shared = xp.broadcast_to(rows, (*scores.shape, rows.shape[-1]))
        best_rows = xp.take_along_axis(shared, best(scores)[..., None, None], -2)[..., 0, :]
        return (
            super().slope(state, theta) - self.optimism * (is_below_cap[..., None, :] @ best_rows)[..., 0, :]
        )

    def update(self, parameters: tuple[()], state: State, evidence: Evidence, reward: Array) -> State:
        """Remember the round, and all its arms."""
        after = super().update(parameters, state, evidence, reward)
        return after._replace(more=_add_round(state.more, state.seen, _rows_of_all(evidence)))


def _rows_of_all(evidence: Evidence) -> Array:
    """The features of all arms, (..., K, m)."""
    xp, arm = evidence.arm.__array_namespace__(), evidence.arm
    number = evidence.design.scores(evidence.belief.centre).shape[-1]
    rows: Array = xp.stack([evidence.design.row(xp.full_like(arm, a)) for a in range(number)], -2)
    return rows


def _add_round(past: SeenRounds, seen: Array, rows: Array) -> SeenRounds:
    """The history with one more round, in its slot or at the end."""
    xp, old, new = rows.__array_namespace__(), past.rows, rows[..., None, :, :]
    if past.slots is not None:
        return past._replace(rows=xp.where((past.slots == seen)[:, None, None], new, old))
    shape = *rows.shape[:-2], old.shape[-3], *rows.shape[-2:]
    return past._replace(rows=xp.concat([xp.broadcast_to(old, shape), new], axis=-3))


FEELGOOD = [
    Baseline(
        Agent(
            "feelgood",
            Identity(),
            FeelGood(),
            Thompson(),
            binary_learner=FeelGood(zero_one=True),
            summary="Langevin Monte Carlo, drawn to a theta under which past rounds promised much",
            reference=FEELGOOD_PAPER,
        ),
        needs="the horizon",
        tuned="optimism",
        grid=(0.001, 0.005, 0.02, 0.1, 0.25, 0.5),
        sure="medium",
    )
]
