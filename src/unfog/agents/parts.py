"""The contracts of the three parts of an agent. A part is a module: a few pure functions over a state.

Every part has `setup`, which does once what depends on the problem alone, and `start`, which gives the first
state; the rest is called once a round. Parameters and states are NamedTuples of arrays, so that either kind
of engine can carry them.
"""

from typing import Any, NamedTuple, Protocol, TypeAlias

from unfog.arrays import Array, Ints
from unfog.blocks import Belief
from unfog.features import Context, Design
from unfog.knowledge import Knowledge

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
        """The rewards it is for: one of `unfog.rewards.KINDS`."""
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


class Chooser(Protocol):
    """From the expected features and the belief about theta to an arm."""

    def normals(self, known: Knowledge) -> int:
        """How many standard normals one choice takes."""
        ...

    def choose(self, design: Design, belief: Belief, normals: Array) -> Ints:
        """The arm: (...,)."""
        ...
