"""The contracts of the three parts of an agent. A part is a module: a few pure functions over a state.

Every part has `setup`, which does once what depends on the problem alone, and `start`, which gives the first
state; the rest is called once a round. Parameters and states are NamedTuples of arrays, so that either kind
of engine can carry them.
"""

from typing import Any, NamedTuple, Protocol, TypeAlias

from unfog.features import Context, Design, FeatureMap
from unfog.maths.arrays import Array, Ints
from unfog.maths.blocks import Belief
from unfog.model.knowledge import Knowledge
from unfog.model.shrinkage import Shrinkage

Parameters: TypeAlias = Any
State: TypeAlias = Any


class Privilege(NamedTuple):
    """The truth that an oracle is shown: the only way by which truth reaches an agent."""

    bias: Array  # (..., d) gamma*


class Denoiser(Protocol):
    """From a noisy context, and what came before it, to a belief about the true one."""

    def setup(self, known: Knowledge, privilege: Privilege | None) -> Parameters:
        """Everything that depends on the problem alone."""
        ...

    def start(self, parameters: Parameters) -> State:
        """What is remembered before the first round."""
        ...

    def predict(self, parameters: Parameters, state: State, noisy: Array) -> Context:
        """The belief about this round's context: noisy (..., d)."""
        ...

    def update(self, parameters: Parameters, state: State, noisy: Array, revealed: Any) -> State:
        """What is remembered after the round; `revealed` is the true context where the agent is shown it."""
        ...


class Chain(Protocol):
    """What a learner does before every decision, step by step, where its belief has no closed form."""

    @property
    def steps(self) -> int:
        """How many steps a round takes."""
        ...

    def normals(self, known: Knowledge, seen: int) -> int:
        """How many standard normals a step takes with so many rounds remembered."""
        ...

    def step(self, parameters: Parameters, state: State, normals: Array) -> State:
        """One step: normals (..., n)."""
        ...

    def work(self, known: Knowledge) -> int:
        """Multiplications of a step for each round remembered, or what takes as long: an estimate."""
        ...


class Learner(Protocol):
    """From expected features and rewards to a belief about theta."""

    @property
    def kind(self) -> str:
        """The rewards it is for: one of `unfog.model.rewards.KINDS`."""
        ...

    @property
    def chain(self) -> Chain | None:
        """Its steps before every decision, or None where `update` does all there is to do."""
        ...

    @property
    def spread(self) -> bool:
        """Whether `update` is to be shown Cov(phi) of the chosen arm."""
        ...

    def setup(self, known: Knowledge) -> Parameters:
        """Everything that depends on the problem alone."""
        ...

    def start(self, known: Knowledge, rounds: int | None) -> State:
        """The state before the first round; with room for so many, or growing, where past rounds are kept."""
        ...

    def belief(self, parameters: Parameters, state: State) -> Belief:
        """The current belief about theta; a sampler's is certain of its current sample."""
        ...

    def update(
        self, parameters: Parameters, state: State, row: Array, spread: Array | None, reward: Array
    ) -> State:
        """The state after a reward: row (..., m), spread (..., m, m) or None, reward (...,)."""
        ...


class TakesLong(Protocol):
    """What a denoiser or a learner may have besides, so that engines can be chosen by how long they take."""

    @property
    def extra(self) -> float:
        """By how much a round takes longer for it, in rounds of the simplest parts: an estimate."""
        ...


class WeighsNoise(Protocol):
    """What a learner with `spread` may have besides, to be shown less than Cov(phi), at less cost."""

    @property
    def noise(self) -> bool:
        """Whether `update` is to be shown E[theta'Cov(phi)theta] (...,) in place of Cov(phi)."""
        ...

    @property
    def surprise(self) -> bool:
        """Whether Cov(phi)E[theta] is to follow it: (..., 1 + m)."""
        ...


class Hindsight(NamedTuple):
    """What all measurements, this round's included, say of the bias and so of every context up to now.

    Given them, the context of a round with measurement chat is N(mu_c + B (chat - mu_c - g), M^-1 + B S B').
    """

    shrinkage: Shrinkage  # mu_c, B, M^-1
    mean: Array  # (..., d)  g
    cov: Array  # (..., d, d)  S


class Rewinds(Protocol):
    """What a denoiser has besides, for learners that denoise past rounds anew (those that are `lifted`)."""

    def hindsight(self, parameters: Parameters, state: State, noisy: Array) -> Hindsight:
        """With this round's measurement taken in."""
        ...

    def unbiased(self, parameters: Parameters, noisy: Array) -> Array:
        """The mean of the context, were the bias zero: mu_c + B (chat - mu_c)."""
        ...


class LooksBack(Protocol):
    """What a learner has besides that denoises past rounds anew. Its rows are lifted (features/lift.py)."""

    @property
    def lifted(self) -> bool:
        """True."""
        ...

    def look_back(
        self, parameters: Parameters, state: State, features: FeatureMap, hindsight: Hindsight, noisy: Array
    ) -> tuple[Belief, Context]:
        """The belief about theta, and about this round's context, with all past rounds denoised anew."""
        ...


class Term(NamedTuple):
    """What one round says of theta: reward = row'theta + N(0, variance)."""

    row: Array  # (..., m)
    variance: Array  # (...,)


class Corrects(Protocol):
    """What a denoiser has besides, for true contexts that come late, in any order, or in part."""

    def amend(
        self, parameters: Parameters, state: State, noisy: Array, before: Array, after: Array
    ) -> tuple[State, Context]:
        """Replace what a round with this measurement said of the bias, and say what its context is now.

        `before` and `after` are its true context as far as it was, and is, known: not a number elsewhere.
        """
        ...


class TakesBack(Protocol):
    """What a learner has besides, for the same. Its `update` is shown a variance in place of Cov(phi)."""

    def variance(self, parameters: Parameters, belief: Belief, spread: Array | None) -> Array:
        """The variance of a reward whose features have this covariance."""
        ...

    def amend(self, parameters: Parameters, state: State, old: Term, new: Term, reward: Array) -> State:
        """The state with one round's term replaced by another."""
        ...


class Chooser(Protocol):
    """From the expected features and the belief about theta to an arm."""

    def normals(self, known: Knowledge) -> int:
        """How many standard normals one choice takes."""
        ...

    def choose(self, design: Design, belief: Belief, normals: Array, number: Ints | None = None) -> Ints:
        """The arm: (...,). Rounds are numbered from 0."""
        ...

    @property
    def odds(self) -> str:
        """How `probability` knows what it says: "exact", or "estimated" from the draws it is given."""
        ...

    def probability(
        self, design: Design, belief: Belief, arm: Ints, draws: Array, number: Ints | None = None
    ) -> Array:
        """With which probability this arm (...,) is chosen: draws (n, ..., w), w as in `normals`."""
        ...
