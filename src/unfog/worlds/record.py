"""A recorded channel: contexts and measurements are rows of data in the order of time, rewards simulated.

The first rows calibrate: sensors are turned into contexts by a line each (`affine`), and what agents are told
of contexts, noise and bias is `calibrate` of these rows alone. The rest is played: round t of a trial that
starts at row `first` is row (first + t) mod n, at the time of that row, which goes on where the record is
begun again (worlds/clock.py). A context is 1 in the calibration's mean and moves by 1 with each of its
standard deviations; scores are (a * c)'theta*.

The true context is in the data and the bias is not: regret is against c_t. To see what a departure from the
Gaussian model costs, contexts or errors can be drawn from the model instead, in the same units.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unfog import validation
from unfog.channel.calibration import Calibration, affine, calibrate
from unfog.channel.dynamics import Tempo
from unfog.features.link import Identity, Rewards
from unfog.maths.arrays import Array, Ints
from unfog.validation import InputError, Numbers
from unfog.worlds import rhythm, told
from unfog.worlds.arms import arms
from unfog.worlds.channel import channel
from unfog.worlds.clock import Clock
from unfog.worlds.composed import LAWS, Composed, Parts, described
from unfog.worlds.contexts import Contexts, Rows, as_told
from unfog.worlds.payoffs import Noisy

SOURCES = ("data", "gaussian")
LEVEL = 1.0  # a context in average air: at 0, arms would be alike to an agent that knows the mean alone


class Record(NamedTuple):
    """Pairs in the order of time, none missing."""

    true: Array  # (n, d)
    raw: Array  # (n, d)  the sensors beside, in units of their own
    groups: Ints  # (n,)   pairs that may share a bias: weeks
    times: Array  # (n,)   never going back


@dataclass(frozen=True, kw_only=True, eq=False)
class Recorded(Composed):
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
    has_bias = False

    def __post_init__(self) -> None:
        """Check every field; the record is not needed for it."""
        validation.count("calibration", self.calibration, self.dim + 1)
        validation.one_of("contexts", self.contexts, SOURCES)
        validation.one_of("channel", self.channel, SOURCES)
        validation.flag("hindsight", self.hindsight)
        zero, one = np.zeros(self.dim), np.eye(self.dim)
        unseen = Calibration(zero, one, zero, one, one, 0, zero[None])
        self._played(unseen, zero[None], zero[None], np.zeros(1))
        told.check(self)

    @property
    @abstractmethod
    def dim(self) -> int:
        """How many coordinates; known before the record is."""

    @abstractmethod
    def record(self) -> Record:
        """The data."""

    @property
    def rewards(self) -> Rewards:
        """Scores plus noise; known before the record is."""
        return Identity()

    def _compose(self) -> Parts:
        record = self.record()
        found, contexts, noisy = calibrated(record, self.calibration, self.hindsight)
        rest = slice(self.calibration, None)
        first = slice(self.calibration)
        tempo, why = None, "agents are told of no time: they calibrate in hindsight"
        if not self.hindsight:
            tempo, why = rhythm.tempo(noisy[first], contexts[first], record.times[first])
        if why:
            object.__setattr__(self, "note", "; ".join(filter(None, (self.note, why))))
        return self._played(found, contexts[rest], (noisy - contexts)[rest], record.times[rest], tempo)

    def _played(
        self, found: Calibration, rows: Array, errors: Array, times: Array, tempo: Tempo | None = None
    ) -> Parts:
        """The world of a calibration and the rows to play, (n, d), at these times (n,)."""
        payoff = Noisy(validation.positive("reward_var", self.reward_var))
        made = arms(self.actions, self.action_law, "product", self.dim)
        laws = {name: getattr(found, name) for name in LAWS}
        known = described(self.dim, made.one(), payoff, self.prior_mean, self.prior_cov, **laws)
        tempo = rhythm.drawn(tempo, found, self.contexts != "data", self.channel != "data")
        known = known._replace(sample=found.contexts, tempo=tempo)
        contexts: Contexts = Rows(rows) if self.contexts == "data" else as_told(known)
        recorded = errors if self.channel == "data" else None
        return Parts(known, contexts, channel(self, known, recorded), made, payoff, Clock(times))


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
