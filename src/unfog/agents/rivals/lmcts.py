"""LMC-TS, a rival that samples by Langevin Monte Carlo."""

from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import numpy as np

from unfog import validation
from unfog.agents.assemble import Agent
from unfog.agents.choose.thompson import Thompson
from unfog.agents.denoise import Identity
from unfog.agents.evidence import Evidence
from unfog.agents.learn import history
from unfog.agents.learn.history import History, logits
from unfog.agents.learn.refit import MOST_STEPS
from unfog.agents.parts import Chain
from unfog.agents.rivals.either import EitherKind
from unfog.agents.rivals.rival import Rival
from unfog.channel.knowledge import Knowledge
from unfog.maths.arrays import Array, matvec
from unfog.maths.gaussian import Gaussian, certain
from unfog.maths.logistic import sigmoid

PAPER = "Xu, Zheng, Mazumdar, Azizzadenesheli and Anandkumar, Langevin Monte Carlo for Contextual Bandits"


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
    more: Any = ()  # what those who inherit this keep besides


@dataclass(frozen=True, kw_only=True)
class Langevin(EitherKind, Chain):
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

    def room(self, known: Knowledge, rounds: int) -> int:
        """The past, twice over while a round is added, and the normals of a decision."""
        m = known.prior_mean.shape[-1]
        return 4 * m * (rounds if self.zero_one else m) + 2 * m * self.steps

    def setup(self, known: Knowledge) -> tuple[()]:
        """Nothing."""
        return ()

    def start(self, known: Knowledge, rounds: int | None) -> State:
        """At zero; the first step of all leads to the first theta."""
        m = known.prior_mean.shape[-1]
        past = history.blank(known, rounds, False) if self.zero_one else Sums(np.zeros((m, m)), np.zeros(m))
        nothing = np.zeros(())
        return State(past, np.zeros(m), nothing, nothing, nothing, nothing + 1)

    def step(self, parameters: tuple[()], state: State, normals: Array) -> State:
        """One step down U, with noise; of length zero where enough were taken."""
        xp = normals.__array_namespace__()
        size = normals.shape[-1]
        rate = self.rate / state.scale * self._due(state)
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
        past, bowl = state.past, 2 * self.ridge * theta
        if isinstance(past, Sums):
            return bowl + 2 * (matvec(past.squares, theta) - past.products)
        at = logits(past, theta)
        return bowl + matvec(at.rows, sigmoid(at.value) - past.rewards)

    def _due(self, state: State) -> Array:
        """One where a step is due, else zero."""
        xp = state.seen.__array_namespace__()
        due: Array = (state.taken < xp.minimum(state.seen, self.steps)).astype(state.seen.dtype)
        return due

    def belief(self, parameters: tuple[()], state: State) -> Gaussian:
        """It is certain of its current sample."""
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
            new = history.add(past, evidence, reward)
        return State(new, state.theta, seen, state.taken * 0, power, scale, state.more)


RIVALS = [
    Rival(
        Agent(
            "lmcts",
            Identity(),
            Langevin(),
            Thompson(),
            binary=Langevin(zero_one=True, temperature=0.001),
            summary="Langevin Monte Carlo, with the steps and temperatures of its authors",
            reference=PAPER,
        ),
        told="the horizon",
        sees="noisy contexts, taken for true ones",
        regret="regret_true_context",
        home="rival-lmcts",
        tuned="temperature",
        grid=(1e-7, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
    )
]
