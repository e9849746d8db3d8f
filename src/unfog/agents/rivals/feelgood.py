"""Feel-good Langevin Thompson sampling."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unfog import validation
from unfog.agents.assemble import Agent
from unfog.agents.choose.largest import best
from unfog.agents.choose.thompson import Thompson
from unfog.agents.denoise import Identity
from unfog.agents.evidence import Evidence
from unfog.agents.rivals.lmcts import Langevin, State
from unfog.agents.rivals.rival import Rival
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array

PAPER = (
    "Zhang, Feel-Good Thompson Sampling for Contextual Bandits and Reinforcement Learning; Anand and Liaw, "
    "Feel-Good Thompson Sampling for Contextual Bandits: a Markov Chain Monte Carlo Showdown"
)
USUAL_ARMS = 40  # for estimates of room and time, which are asked for before there are arms


class Shown(NamedTuple):
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
    rounds. With lambda = 0 it is LMC-TS with these settings (rivals/lmcts.py, whose remarks on the length of
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

    def room(self, known: Knowledge, rounds: int) -> int:
        """All arms of all rounds, as many as there usually are."""
        return super().room(known, rounds) + 4 * USUAL_ARMS * known.prior_mean.shape[-1] * rounds

    def start(self, known: Knowledge, rounds: int | None) -> State:
        """With room for one arm in every round, which the first round makes room for all of."""
        state, m = super().start(known, rounds), known.prior_mean.shape[-1]
        slots = None if rounds is None else np.arange(rounds, dtype=np.float64)
        return state._replace(more=Shown(np.zeros((rounds or 0, 1, m)), slots))

    def slope(self, state: State, theta: Array) -> Array:
        """U'(theta), with the features of each round's best arm, where that is below the cap."""
        xp, rows = theta.__array_namespace__(), state.more.rows
        scores = (rows @ theta[..., None, :, None])[..., 0]
        below = (scores.max(-1) < self.cap).astype(theta.dtype)
        shared = xp.broadcast_to(rows, (*scores.shape, rows.shape[-1]))
        promised = xp.take_along_axis(shared, best(scores)[..., None, None], -2)[..., 0, :]
        return super().slope(state, theta) - self.optimism * (below[..., None, :] @ promised)[..., 0, :]

    def update(self, parameters: tuple[()], state: State, evidence: Evidence, reward: Array) -> State:
        """Remember the round, and all its arms."""
        after = super().update(parameters, state, evidence, reward)
        return after._replace(more=_added(state.more, state.seen, _rows(evidence)))


def _rows(evidence: Evidence) -> Array:
    """The features of all arms, (..., K, m)."""
    xp, arm = evidence.arm.__array_namespace__(), evidence.arm
    number = evidence.design.scores(evidence.belief.centre).shape[-1]
    found: Array = xp.stack([evidence.design.row(xp.full_like(arm, a)) for a in range(number)], -2)
    return found


def _added(past: Shown, seen: Array, rows: Array) -> Shown:
    """With one more round: in its slot, or at the end."""
    xp, old, new = rows.__array_namespace__(), past.rows, rows[..., None, :, :]
    if past.slots is not None:
        return past._replace(rows=xp.where((past.slots == seen)[:, None, None], new, old))
    shape = *rows.shape[:-2], old.shape[-3], *rows.shape[-2:]
    return past._replace(rows=xp.concat([xp.broadcast_to(old, shape), new], axis=-3))


RIVALS = [
    Rival(
        Agent(
            "feelgood",
            Identity(),
            FeelGood(),
            Thompson(),
            binary=FeelGood(zero_one=True),
            summary="Langevin Monte Carlo, drawn to a theta under which past rounds promised much",
            reference=PAPER,
        ),
        told="the horizon",
        sees="noisy contexts, taken for true ones",
        regret="regret_true_context",
        tuned="optimism",
        grid=(0.001, 0.005, 0.02, 0.1, 0.25, 0.5),
        sure="medium",
    )
]
