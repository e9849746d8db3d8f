"""A recorded channel: contexts and measurements are rows of data in the order of time, rewards simulated.

The first rows calibrate: sensors are turned into contexts by a line each (`affine`), and
what agents are told of contexts, noise and bias is `calibrate` of these rows alone. The
rest is played: round t of a trial that starts at row `first` is row (first + t) mod n. A context is 1 in the
calibration's mean and moves by 1 with each of its standard deviations; scores are (a * c)'theta*.

The true context is in the data and the bias is not: regret is against c_t. To see what a departure from the
Gaussian model costs, contexts or errors can be drawn from the model instead, in the same units.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from unfog import inputs
from unfog.inputs import InputError, Numbers
from unfog.maths.arrays import Array, Ints
from unfog.model.calibration import Calibration, affine, calibrate
from unfog.model.knowledge import Knowledge
from unfog.model.rewards import Identity, Rewards
from unfog.worlds.gaussian import GaussianProblem
from unfog.worlds.problem import Draws, Emission, Truth

SOURCES = ("data", "gaussian")
LEVEL = 1.0  # a context in average air: at 0, arms would be alike to an agent that knows the mean alone


class Record(NamedTuple):
    """Pairs in the order of time, none missing."""

    true: Array  # (n, d)
    raw: Array  # (n, d)  the sensors beside, in units of their own
    groups: Ints  # (n,)   pairs that may share a bias: weeks


class _Played(NamedTuple):
    model: GaussianProblem  # the Gaussian bandit that agents believe in
    contexts: Array  # (n, d)
    errors: Array  # (n, d)


@dataclass(frozen=True, kw_only=True, eq=False)
class Recorded(ABC):
    """The bandit over a record, which subclasses give: `record()`, asked for once, when first needed.

    The first `calibration` rows calibrate. `contexts` and `channel` say where contexts and errors come from:
    "data" or "gaussian", the calibrated model. With `hindsight` the calibration is of the rows played
    instead: what pairs from all of them would have told. Other fields are those of `GaussianProblem`.
    """

    calibration: int = 1000
    contexts: str = "data"
    channel: str = "data"
    hindsight: bool = False
    actions: int | Array = 40
    action_law: str = "normal"
    prior_mean: Numbers = 0.0
    prior_cov: Numbers = 0.25
    reward_var: float = 1.0
    dim: ClassVar[int] = 4
    late: ClassVar[int] = 0
    partial: ClassVar[bool] = False
    has_bias: ClassVar[bool] = False
    note: ClassVar[str] = ""
    rewards: ClassVar[Rewards] = Identity()

    def __post_init__(self) -> None:
        """Check every field; the record is not needed for it."""
        inputs.count("calibration", self.calibration, self.dim + 1)
        inputs.one_of("contexts", self.contexts, SOURCES)
        inputs.one_of("channel", self.channel, SOURCES)
        inputs.flag("hindsight", self.hindsight)
        self._model()

    @abstractmethod
    def record(self) -> Record:
        """The data."""

    def _model(self, **channel: Any) -> GaussianProblem:
        return GaussianProblem(
            dim=self.dim,
            actions=self.actions,
            action_law=self.action_law,
            prior_mean=self.prior_mean,
            prior_cov=self.prior_cov,
            reward_var=self.reward_var,
            features="linear",
            **channel,
        )

    @cached_property
    def _played(self) -> _Played:
        found, contexts, noisy = calibrated(self.record(), self.calibration, self.hindsight)
        model = self._model(
            context_mean=found.context_mean,
            context_cov=found.context_cov,
            noise_cov=found.noise_cov,
            bias_cov=found.bias_cov,
        )
        rest = slice(self.calibration, None)
        return _Played(model, contexts[rest], (noisy - contexts)[rest])

    def knowledge(self) -> Knowledge:
        """What agents are told: the calibration."""
        return self._played.model.knowledge()

    def arms(self) -> int:
        """How many actions there are."""
        return self._played.model.arms()

    def cells(self) -> int:
        """Numbers that the features of one round keep in memory for a moment."""
        return self._played.model.cells()

    def truth_draws(self) -> Mapping[str, Draws]:
        """Those of the Gaussian bandit, and a uniform number for the first row."""
        return {**self._played.model.truth_draws(), "first": Draws("uniform", ())}

    def truth(self, draws: Mapping[str, Array]) -> Truth:
        """theta*, the actions and the first row of a trial; a bias only where errors are drawn."""
        xp = draws["first"].__array_namespace__()
        truth = self._played.model.truth({name: x for name, x in draws.items() if name != "first"})
        bias = truth.bias if self.channel == "gaussian" else xp.zeros_like(truth.bias)
        return truth._replace(bias=bias, first=xp.floor(draws["first"] * len(self._played.contexts)))

    def round_normals(self) -> int:
        """As many as the Gaussian bandit takes, so that runs with and without data share the rest."""
        return self._played.model.round_normals()

    def emit(self, truth: Truth, normals: Array, number: Ints) -> Emission:
        """A row of the data, or in its place a draw from the model."""
        xp = normals.__array_namespace__()
        drawn = self._played.model.emit(truth, normals)
        row = (xp.astype(xp.asarray(truth.first), xp.int64) + number) % len(self._played.contexts)
        context = xp.asarray(self._played.contexts)[row] if self.contexts == "data" else drawn.context
        error = drawn.noisy - drawn.context
        if self.channel == "data":
            error = xp.asarray(self._played.errors)[row]
        return Emission(context, context + error)

    def reward(self, score: Array, normals: Array) -> Array:
        """The score plus N(0, sigma^2)."""
        return self._played.model.reward(score, normals)


def calibrated(record: Record, calibration: int, hindsight: bool = False) -> tuple[Calibration, Array, Array]:
    """The channel, and all contexts and noisy contexts in its units, freed of the mean error."""
    rows = len(record.true)
    if calibration >= rows:
        raise InputError("calibration", calibration, f"fewer than the record's {rows} rows")
    first = record.true[:calibration]
    contexts = LEVEL + (record.true - first.mean(axis=0)) / first.std(axis=0, ddof=1)
    known = slice(calibration, None) if hindsight else slice(calibration)
    if len(set(record.groups[known])) < 2:
        where = "after" if hindsight else "in"
        problem = f"{calibration}, {where} which all rows are of one group"
        raise InputError("calibration", problem, "a stretch over two groups (weeks) or more")
    noisy = affine(record.raw[known], contexts[known]).contexts(record.raw)
    found = calibrate(noisy[known], contexts[known], groups=record.groups[known])
    return found, contexts, noisy - found.bias
