"""The contracts of an agent's three parts, the abilities a part may declare, and the evidence of a round.

A part is a value: an instance of a frozen dataclass that inherits its contract, so that it can be compared,
hashed, stored and sent to another process. Its settings are its fields; its name and a note stand on the
class. It holds no state: `setup` computes once what depends on the problem alone, `start` gives the first
state, and the other methods are called in a round (agents/round.py). Parameters and states are (nested)
tuples of arrays, so that interpreted and compiled engines can both carry them.

What a part can do beyond its contract is an ability: a protocol of its own that the part inherits too. Those
of an agent's parts are one value, `agent.can` (`Abilities` in agents/agent.py). A part that needs an ability
of another part names it (`needs`, `needs_features`), and so does a chooser that goes with one kind of learner
(`needs_learner`). All of this is checked once, when an agent is put together and when it meets a problem.

A learner sees a round as `Evidence`: the arm, and what was believed when it was chosen. A reward depends on
phi(a, c), of which the agent knows only the distribution. Learners ask for as much of it as they use, and it
is computed on demand: the expected features x, their covariance, what not knowing the context adds to the
variance of a reward, E[theta'Cov(phi)theta], or half the slope of that, Cov(phi)E[theta].
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias, cast, runtime_checkable

from unfog.channel.knowledge import Knowledge, Shrinkage
from unfog.features import Context, Design, FeatureMap
from unfog.features.base import Liftable
from unfog.maths.arrays import Array, Bools, Ints
from unfog.maths.gaussian import Belief
from unfog.validation import InputError

Parameters: TypeAlias = Any
State: TypeAlias = Any


class Privilege(NamedTuple):
    """The truth that an oracle is shown: the only way by which truth reaches an agent.

    >>> import numpy as np
    >>> from unfog.agents.base import Privilege
    >>> Privilege(bias=np.array([-1.0])).bias.tolist()
    [-1.0]
    """

    bias: Array  # (..., d) gamma*


class Part(Protocol):
    """What all parts have."""

    name: ClassVar[str]
    note: ClassVar[str]  # what it does, in a line

    @property
    def cost(self) -> float:
        """How much time it adds to a round, estimated in rounds of the simplest parts."""
        return 0.0

    @property
    def interpreted(self) -> str:
        """Why no compiled engine can play it, in words; empty where any can."""
        return ""


@runtime_checkable
class Denoiser(Part, Protocol):
    """From a noisy context, and what came before it, to a belief about the true one.

    >>> import numpy as np
    >>> import unfog
    >>> from unfog.agents.base import Denoiser
    >>> one = unfog.denoise.Exact()
    >>> isinstance(one, Denoiser), one.name, one.sees_context
    (True, 'exact', False)
    >>> parameters = one.setup(unfog.GaussianProblem(dim=2, actions=5).knowledge(), None)
    >>> one.predict(parameters, one.start(parameters), np.array([2.0, 0.0])).mean.shape
    (2,)
    """

    @property
    def sees_context(self) -> bool:
        """Whether it is to be shown true contexts, after their rewards."""
        return False

    @property
    def takes_gaps(self) -> bool:
        """Whether it is shown what was lost of a noisy context as not a number; others read mu_c there."""
        return False

    @property
    def needs_moments(self) -> bool:
        """Whether it must be told the mean and the covariance of contexts, and the covariance of biases."""
        return True

    @property
    def settled(self) -> bool:
        """Whether its beliefs have one covariance from the first round to the last, where nothing is lost."""
        return False

    @property
    def needs_knowledge(self) -> tuple[str, ...]:
        """What it must be told of contexts beyond their moments: fields of `Knowledge` that may be None."""
        return ()

    @property
    def squares(self) -> int:
        """Matrices (d, d) that every trial has to itself, believed or remembered; 0: all share theirs."""
        return 0

    @abstractmethod
    def setup(self, known: Knowledge, privilege: Privilege | None) -> Parameters:
        """Everything that depends on the problem alone; only `SeesBias` denoisers get a privilege."""

    def start(self, parameters: Parameters) -> State:
        """The state before the first round; empty by default."""
        return ()

    @abstractmethod
    def predict(self, parameters: Parameters, state: State, noisy: Array) -> Context:
        """The belief about this round's context: noisy (..., d)."""

    def update(self, parameters: Parameters, state: State, noisy: Array, context: Any) -> State:
        """The state after a noisy context and, for denoisers that see it, its true one (else None)."""
        return state


class Evidence(NamedTuple):
    """A round as a learner sees it; where the true context is known, the design is that of this context.

    >>> import numpy as np
    >>> import unfog
    >>> from unfog.agents.base import Evidence
    >>> from unfog.features import Context
    >>> from unfog.maths.gaussian import Gaussian
    >>> features = unfog.features.product(np.array([[1.0], [-1.0]]))
    >>> design = features.design(Context(np.array([2.0]), np.array([[0.5]])))
    >>> seen = Evidence(features, design, Gaussian(np.array([0.5]), np.eye(1)), arm=np.array(1))
    >>> seen.row().tolist(), seen.covariance().tolist()
    ([-2.0], [[0.5]])
    """

    features: FeatureMap
    design: Design
    belief: Belief  # about theta
    arm: Ints  # (...,)
    unbiased: Array | None = None  # (..., d)  mean of the context, were the bias zero, for lifted rows
    hidden: Array | None = None  # (...,)  `context_variance`, if it is computed already
    chosen: Array | None = None  # (..., m)  `row`, if it is computed already
    context: Context | None = None  # the belief about it, for learners that ask for `shift`
    choice_report: Array | None = None  # (...,)  of a chooser that `ReportsChoice`

    def row(self) -> Array:
        """The expected features of the arm, (..., m)."""
        return self.design.row(self.arm) if self.chosen is None else self.chosen

    def covariance(self) -> Array:
        """Cov(phi), (..., m, m)."""
        return self.design.covariance(self.arm)

    def context_variance(self) -> Array:
        """E[theta'Cov(phi)theta]: what not knowing the context adds to the variance of a reward, (...,)."""
        if self.hidden is not None:
            return self.hidden
        fitting: Any = self.belief  # a belief in blocks comes with a design in blocks
        return self.design.context_variance(fitting, self.arm)

    def expected_reward(self, noise: Array) -> tuple[Array, Array]:
        """Mean and variance of a reward, (...,) each; `noise` is its variance given theta."""
        row = self.row()
        xp = row.__array_namespace__()
        return xp.vecdot(row, self.belief.centre), noise + self.belief.variance(row)

    def weighed(self) -> "Evidence":
        """The evidence with `row` and `context_variance` computed, for those who ask more than once."""
        return self._replace(hidden=self.context_variance(), chosen=self.row())

    def known_to_be(self, design: Design) -> "Evidence":
        """The evidence with what is known of the context by now."""
        return self._replace(design=design, hidden=None, chosen=None, context=None)

    def context_slope(self) -> Array:
        """Cov(phi)E[theta], half the slope of theta'Cov(phi)theta at the mean, (..., m)."""
        return self.design.context_slope(self.belief.centre, self.arm)

    def lifted_row(self) -> Array:
        """The lifted row, which does not depend on the bias, (..., q): features/base.py."""
        if self.unbiased is None:
            raise ValueError("a lifted row needs a denoiser that rewinds")
        return cast(Liftable, self.features).lift(self.unbiased, self.arm)

    def shift(self) -> tuple[Context, Array]:
        """The belief about the context, and how far the believed bias moved its mean, (..., d)."""
        if self.unbiased is None or self.context is None:
            raise ValueError("a shift needs a denoiser that rewinds")
        return self.context, self.unbiased - self.context.mean


class Known(Evidence):
    """A round whose context is known for certain: no variance comes of it."""

    def context_variance(self) -> Array:
        """Zero."""
        xp = self.arm.__array_namespace__()
        zeros: Array = xp.zeros(self.arm.shape, dtype=self.belief.root.dtype)
        return zeros


@runtime_checkable
class Learner(Part, Protocol):
    """From what rounds show of theta, and their rewards, to a belief about theta.

    >>> import unfog
    >>> from unfog.agents.base import Learner
    >>> one = unfog.learn.Conjugate()
    >>> isinstance(one, Learner), one.name, one.rewards
    (True, 'conjugate', 'gaussian')
    >>> known = unfog.GaussianProblem(dim=2, actions=5).knowledge()
    >>> one.belief(one.setup(known), one.start(known, None)).mean.tolist() == known.prior_mean.tolist()
    True
    """

    rewards: ClassVar[str]  # those it is for: one of `unfog.features.link.KINDS`
    needs: ClassVar[tuple[type, ...]] = ()  # abilities that its denoiser must have
    needs_features: ClassVar[tuple[type, ...]] = ()  # abilities that the feature map must have
    dense: ClassVar[bool] = False  # whether it keeps one matrix even where the prior has blocks
    is_linear: ClassVar[bool] = False  # whether scores are means of rewards of 0 or 1, not their logits
    own_belief: ClassVar[bool] = False  # whether only choosers whose `needs_learner` names it may use it
    needs_report: ClassVar[str] = ""  # what a chooser (`ReportsChoice`) must report of each choice

    @property
    def averages_context(self) -> bool:
        """Whether the context is averaged out of its likelihood, where that is not the score's mean alone."""
        return False

    @property
    def squares(self) -> int:
        """Matrices of the size of theta's covariance that it keeps for every trial."""
        return 1

    def misses(self, denoiser: Denoiser) -> str:
        """The requirement that this denoiser does not meet, in words; empty if they go together."""
        return _first_missing(denoiser, (*self.needs, Rewinds) if isinstance(self, LooksBack) else self.needs)

    def check(self, known: Knowledge, features: FeatureMap) -> None:
        """Raise InputError for a problem that it is not for."""
        for ability in self.needs_features:
            if not isinstance(features, ability):
                what = f"{self.name!r} with the features {type(features).__name__}"
                raise InputError("learner", what, f"with it {_describe(ability)}")

    def noise(self, parameters: Parameters, state: State, hidden: Array | float) -> Array | None:
        """The variance of a reward given theta, (...,); None where rewards have bounds of their own.

        `hidden` is what not knowing the context adds, as the belief has it.
        """
        return None

    @abstractmethod
    def setup(self, known: Knowledge) -> Parameters:
        """Everything that depends on the problem alone; InputError where its settings are not for it."""

    @abstractmethod
    def start(self, known: Knowledge, rounds: int | None) -> State:
        """The state before the first round; a memory of past rounds has this fixed size, or grows if None."""

    @abstractmethod
    def belief(self, parameters: Parameters, state: State) -> Belief:
        """The current belief about theta; a sampler's is certain of its current sample."""

    @abstractmethod
    def update(self, parameters: Parameters, state: State, evidence: Evidence, reward: Array) -> State:
        """The state after a reward (...,), which was paid for what the evidence is about."""


def _no_noise(arm: Ints) -> None:
    """No variance: the rewards' range bounds it."""


class View(NamedTuple):
    """What is believed before an arm is chosen.

    >>> import numpy as np
    >>> import unfog
    >>> from unfog.agents.base import View
    >>> from unfog.features import Context
    >>> from unfog.maths.gaussian import Gaussian
    >>> context = Context(np.array([2.0]), np.zeros((1, 1)))
    >>> design = unfog.features.product(np.array([[1.0], [-1.0]])).design(context)
    >>> view = View(context, design, Gaussian(np.array([0.5]), np.eye(1)))
    >>> view = view._replace(arms=np.array([False, True]))
    >>> view.mask(np.array([3.0, 1.0])).tolist()  # the first arm may not be chosen
    [-inf, 1.0]
    """

    context: Context
    design: Design
    belief: Belief
    round: Ints | None = None  # its number, from 0
    arms: Array | None = None  # (..., K)  true where an arm may be chosen, one at least; None: all of them
    noise: Callable[[Ints], Array | None] = _no_noise  # variance of an arm's reward given theta, (...,)
    features: FeatureMap | None = None  # the map of the design, for choosers that evaluate other contexts
    reach: Array | None = None  # (..., d)  how far its mean may be off, where the denoiser `BoundsMean`
    weights: Array | None = None  # (..., J)  of candidates, if there is an axis of them
    by_lot: Bools | None = None  # (...,)  true where the arm is to be drawn by lot; None: nowhere

    def mask(self, values: Array) -> Array:
        """Values of every arm (..., K), with those that may not be chosen below all others."""
        if self.arms is None:
            return values
        xp = values.__array_namespace__()
        return xp.where(self.arms, values, -xp.inf)


@runtime_checkable
class Chooser(Part, Protocol):
    """From expected features and the belief about theta to an arm that may be chosen.

    >>> import unfog
    >>> from unfog.agents.base import Chooser
    >>> one = unfog.choose.Thompson()
    >>> isinstance(one, Chooser), one.name, one.propensity
    (True, 'thompson', 'estimated')
    """

    needs_learner: ClassVar[tuple[type, ...]] = ()  # kinds of learner, all of which its learner must be
    takes_candidates: ClassVar[bool] = False  # whether it mixes candidates, and draws by lot
    draws_theta: ClassVar[bool] = True  # if not, any root of the covariance gives the same arm

    def misses(self, learner: Learner) -> str:
        """The requirement that this learner does not meet, in words; empty if they go together."""
        return _first_missing(learner, self.needs_learner)

    @property
    def propensity(self) -> Literal["exact", "estimated"]:
        """How `probabilities` knows what it says: exactly, or from the draws it is given."""
        return "estimated"

    @abstractmethod
    def normals(self, known: Knowledge) -> int:
        """How many standard normals one choice takes: w."""

    @abstractmethod
    def choose(self, view: View, normals: Array) -> Ints:
        """The arm (...,) for standard normals (..., w)."""

    def probabilities(self, view: View, draws: Array) -> Array:
        """With which probability each arm is chosen, (..., K); from draws (n, ..., w), unless known."""
        xp = draws.__array_namespace__()
        arms = xp.arange(view.design.scores(view.belief.centre).shape[-1])
        is_chosen = [self.choose(view, normals)[..., None] == arms for normals in draws]
        shares: Array = xp.stack(is_chosen).astype(draws.dtype).mean(0)
        return shares

    def choose_with_probabilities(self, view: View, normals: Array, draws: Array) -> tuple[Ints, Array]:
        """What `choose` and `probabilities` return, for choosers that can share work between them."""
        return self.choose(view, normals), self.probabilities(view, draws)


def _first_missing(part: Part, needs: tuple[type, ...]) -> str:
    """The first of these abilities that a part lacks, in words; empty if it has all."""
    return next((_describe(ability) for ability in needs if not isinstance(part, ability)), "")


def _describe(ability: type) -> str:
    """An ability in words: the first sentence of its docstring, and its name; for a part, its name alone."""
    if Learner in ability.__mro__:
        return f"the learner {vars(ability)['name']!r}"
    text = (ability.__doc__ or ability.__name__).splitlines()[0].rstrip(".")
    return f"{text[0].lower()}{text[1:]} ({ability.__name__})"


@runtime_checkable
class ReportsChoice(Protocol):
    """A chooser that reports to the learner how the arm was chosen."""

    reports: ClassVar[str] = ""  # `needs_report` of the learner: "probability", "stage"

    @abstractmethod
    def choose_and_report(self, view: View, normals: Array) -> tuple[Ints, Array]:
        """The arm that `choose` returns, and a number (...,) for the learner, in `Evidence.choice_report`."""


@runtime_checkable
class SeesBias(Protocol):
    """A denoiser that is told the bias."""

    @abstractmethod
    def with_bias(self, parameters: Parameters, bias: Array) -> Parameters:
        """The parameters with the bias of this round (..., d), where it is not the same in all rounds."""


@runtime_checkable
class PredictsReading(Protocol):
    """A denoiser that says what the next noisy context will be like."""

    @abstractmethod
    def predict_reading(self, parameters: Parameters, state: State) -> tuple[Array, Array]:
        """Mean and variance of each of its coordinates: (..., d) each."""


@runtime_checkable
class BoundsMean(Protocol):
    """A denoiser that says how far off the mean of a context may be."""

    @abstractmethod
    def reach(self, parameters: Parameters, state: State, noisy: Array) -> Array:
        """The half axes of an ellipsoid around what `predict` says, (..., d); zero where it is certain."""


@runtime_checkable
class ForecastsReading(Protocol):
    """A denoiser that predicts the next noisy context better than `predict_reading`, which must be cheap."""

    @abstractmethod
    def forecast_reading(self, parameters: Parameters, state: State) -> tuple[Array, Array]:
        """Mean and variance of each of its coordinates, by all that is known: (..., d) each."""


@runtime_checkable
class Precomputes(Protocol):
    """A denoiser that can do once the work that `predict_reading` and `predict` share."""

    @abstractmethod
    def precompute(self, parameters: Parameters, state: State) -> State:
        """The state with that work done, for `predict_reading` and `predict` alone."""


@runtime_checkable
class KnowsBias(Protocol):
    """A denoiser that says what it believes of the channel's bias."""

    @abstractmethod
    def bias(self, parameters: Parameters, state: State) -> tuple[Array, Array]:
        """Mean (..., d) and covariance (..., d, d) of the bias of the round to come.

        For denoisers of time, the bias at the last reading: the next one may come at any time. Of each
        candidate, (..., J, d) and (..., J, d, d), where there are any.
        """


@runtime_checkable
class WeighsHypotheses(Protocol):
    """A denoiser that weighs hypotheses about the channel against each other."""

    @abstractmethod
    def labels(self, parameters: Parameters) -> tuple[dict[str, float], ...]:
        """What each hypothesis says, by name, in the order of their weights."""

    @abstractmethod
    def weights(self, parameters: Parameters, state: State) -> Array:
        """How probable each one is, (..., n)."""


class Pooled(NamedTuple):
    """The state of a denoiser that pools units, in a round of one of them."""

    pool: State  # what all units share
    own: State  # what is of this unit alone


class Spreads(NamedTuple):
    """What is believed of contexts and readings by the readings of all units: (..., d) each."""

    mean: Array  # of true contexts
    within: Array  # variance of true contexts within units
    between: Array  # variance of units' offsets
    devices: Array  # the part of it that is the devices'; of each candidate, (..., J, d), where there are any
    bias: Array  # mean of reading less truth
    noise: Array  # variance of one reading, as told
    is_cut: Bools  # whether that was cut, since readings do not spread as far
    readings: Array  # how many there were, noisy ones counting less
    revealed: Array  # units with readings whose true value is known


@runtime_checkable
class PoolsUnits(Protocol):
    """A denoiser that learns from the readings of all units together.

    The state that its methods get, and return, is `Pooled`: a round hands it the pool that all units share.
    """

    pools_units: ClassVar[bool] = True

    @abstractmethod
    def spreads(self, parameters: Parameters, state: State) -> Spreads:
        """What is believed of contexts and readings by now."""


@runtime_checkable
class ScalesContexts(Protocol):
    """A denoiser whose contexts are on the scale of readings, for maps that have intercepts.

    Contexts may be far from zero compared with their spread, and features of such contexts lose digits: so
    they are counted from an origin. The mean error of readings may be learnt only later: what was believed of
    a context before is then still comparable with what is believed now.
    """

    @abstractmethod
    def origin(self, parameters: Parameters, state: State) -> Array:
        """What is subtracted from a context, (..., d), before features are computed: always the same."""

    @abstractmethod
    def mean_error(self, parameters: Parameters, state: State) -> Array:
        """The mean of readings less true contexts, (..., d), as far as it is known now."""


@runtime_checkable
class HasCandidates(Protocol):
    """A denoiser with several candidates: a belief about the context for each, along an axis (..., J, d).

    Behind each stands a learner of its own: the same part, with that axis in its state. Candidates are
    weighed by how well each predicts rewards (agents/round.py).
    """

    @property
    @abstractmethod
    def candidates(self) -> tuple[str, ...]:
        """Their names, in the order of the axis."""


class Hindsight(NamedTuple):
    """What all measurements, this round's included, say of the bias and so of every context up to now.

    Given them, the context of a round with measurement chat is N(mu_c + B (chat - mu_c - g), M^-1 + B S B').
    """

    shrinkage: Shrinkage  # mu_c, B, M^-1
    mean: Array  # (..., d)  g
    cov: Array  # (..., d, d)  S
    number: Array | None = None  # (..., d)  readings of each coordinate up to now, where they are counted


@runtime_checkable
class Rewinds(Protocol):
    """A denoiser that can say what past contexts were, with what is known of the bias by now."""

    @abstractmethod
    def hindsight(self, parameters: Parameters, state: State, noisy: Array) -> Hindsight:
        """The hindsight after this round's measurement."""

    @abstractmethod
    def unbiased(self, parameters: Parameters, noisy: Array) -> Array:
        """The mean of the context, were the bias zero: mu_c + B (chat - mu_c)."""


@runtime_checkable
class Counts(Rewinds, Protocol):
    """A denoiser that averages readings, and counts them in its hindsight."""

    @abstractmethod
    def readings(self, parameters: Parameters, state: State, noisy: Array) -> Array:
        """How many there were of each coordinate, this one included, (..., d): `Hindsight.number`."""


@runtime_checkable
class LooksBack(Protocol):
    """A learner that denoises past rounds anew before a decision.

    It does so by lifted rows or by slopes (`Liftable` and `Sloped` in features/base.py).
    """

    @abstractmethod
    def look_back(
        self, parameters: Parameters, state: State, features: FeatureMap, hindsight: Hindsight, noisy: Array
    ) -> tuple[Belief, Context]:
        """The belief about theta, and about this round's context, with all past rounds denoised again."""


class Moment(NamedTuple):
    """When a reading was taken, and how."""

    number: Any = None  # (...,)  of the round, from 0; None: the next
    measured_at: Array | None = None  # (...,)  None: the number, or one unit after the last
    noise: Array | None = None  # (..., d, d)  noise covariance of this reading alone; None: as told


@runtime_checkable
class TakesNoise(Protocol):
    """A denoiser that takes readings with a noise of their own."""

    @abstractmethod
    def with_noise(self, parameters: Parameters, noise: Array) -> Parameters:
        """The parameters for a reading with this noise covariance (..., d, d), for all that is about it."""


@runtime_checkable
class UsesTime(Protocol):
    """A denoiser to which it matters when a reading was taken, and how noisy that one was."""

    @abstractmethod
    def stamp(self, state: State, moment: Moment) -> Moment:
        """The moment of the next reading, with nothing left open."""

    @abstractmethod
    def before(self, parameters: Parameters, state: State, moment: Moment) -> State:
        """The state just before a reading, for what is called with that reading alone."""

    @abstractmethod
    def reopen(
        self,
        parameters: Parameters,
        state: State,
        noisy: Array,
        before: Array,
        after: Array,
        moment: Moment,
    ) -> tuple[State, Context]:
        """As `correct` of `Corrects`, for the reading that was taken at this moment."""

    @abstractmethod
    def at_once(self, state: State) -> State:
        """The first state where no true context will come later than its reward: with nothing kept for it."""


@runtime_checkable
class Smooths(Protocol):
    """A denoiser that says what a past context was, with all that is known by now."""

    @property
    @abstractmethod
    def lag(self) -> int:
        """How many rounds later a round is worth learning from again; 0: never."""

    @property
    @abstractmethod
    def window(self) -> int:
        """How many readings are kept."""

    @abstractmethod
    def smooth(self, parameters: Parameters, state: State, moment: Moment, known: Array) -> Context:
        """The context of the reading taken at this moment, (..., d), of which so much is known for certain.

        Not a number marks what is not. InputError where nothing is kept of that reading any more.
        """


@runtime_checkable
class ValuesReveals(Protocol):
    """A denoiser that says what it would be worth to know the true context of the last reading."""

    @abstractmethod
    def value_of_reveal(self, parameters: Parameters, state: State) -> Array:
        """By how much that would reduce the variance of future contexts, (...,), in units of a context's."""


@runtime_checkable
class Corrects(Protocol):
    """A denoiser for true contexts that come late, in any order, or in part."""

    @abstractmethod
    def correct(
        self, parameters: Parameters, state: State, noisy: Array, before: Array, after: Array
    ) -> tuple[State, Context]:
        """Replace what a round with this measurement said of the bias, and say what its context is now.

        `before` and `after` are its true context as far as it was, and is, known: not a number elsewhere.
        Where that is no news (`is_news`) there is nothing to replace, and the context is not used: it may
        then be returned as it is known without its measurement.
        """


def is_news(before: Array, after: Array) -> Bools:
    """Where a true context is known otherwise than before: (..., d) each -> (...,)."""
    xp = after.__array_namespace__()
    news: Bools = ((before != after) & ~(xp.isnan(before) & xp.isnan(after))).any(-1)
    return news


class Term(NamedTuple):
    """What one round says of theta: value = row'theta + N(0, variance)."""

    row: Array  # (..., m)
    variance: Array  # (...,)
    value: Array | tuple[()] = ()  # (...,)  where a learner makes one up for the reward; else the reward


@runtime_checkable
class ReplacesTerms(Protocol):
    """A learner that can replace what a past round said of theta."""

    @abstractmethod
    def belief(self, parameters: Parameters, state: State) -> Belief:
        """The current belief about theta."""

    @abstractmethod
    def term(self, parameters: Parameters, evidence: Evidence) -> Term:
        """What the round says of theta under the current belief, which does not matter if c is known."""

    def fit(self, parameters: Parameters, state: State, old: Term | None, new: Term, reward: Array) -> Term:
        """The new term as it replaces the old one: unchanged, unless it depends on the other terms."""
        return new

    @abstractmethod
    def replace(
        self, parameters: Parameters, state: State, old: Term | None, new: Term, reward: Array
    ) -> State:
        """The state with one round's term replaced, or with a new one; both are as `fit` returned them."""


class Estimates(NamedTuple):
    """What a learner has estimated of rewards, and of the features of the rounds that it has learnt from."""

    location: Array  # (...,)  mean of rewards
    noise: Array  # (...,)  variance of a reward, arm and context known
    mean: Array  # (..., k)  of expected features, in a block of theta
    cov: Array  # (..., k, k)
    is_set: Array  # (...,)  1 once there are estimates


@runtime_checkable
class EstimatesScales(Protocol):
    """A learner that estimates the scales of its own prior, at certain decisions."""

    @abstractmethod
    def is_due(self, number: int) -> bool:
        """Whether scales are estimated before the decision of this number, from 0."""

    @abstractmethod
    def estimate_scales(self, parameters: Parameters, state: State) -> State:
        """The state with scales estimated from all rewards so far."""

    @abstractmethod
    def is_ready(self, state: State, arms: int) -> Bools:
        """Whether enough is known to choose among so many arms, (...,); they are drawn by lot before."""

    @abstractmethod
    def wanted(self, state: State, arms: int) -> Array:
        """How many more rewards that takes, (...,)."""

    @abstractmethod
    def estimates(self, parameters: Parameters, state: State) -> Estimates:
        """What was estimated last."""


@runtime_checkable
class Grows(Protocol):
    """A learner whose theta may become longer: arms can be added."""

    @abstractmethod
    def grow(self, old: Knowledge, new: Knowledge, state: State) -> State:
        """The state as if theta had had its new length from the start, and no round had informed of its end.

        `new` is `old` with a longer prior, the new end of which is independent of the rest: agents/grow.py.
        """


@runtime_checkable
class KeepsRounds(Protocol):
    """A learner that keeps past rounds: compiled programs give it room for all of them."""

    @abstractmethod
    def memory_size(self, known: Knowledge, rounds: int) -> int:
        """How many numbers it keeps for a trial of this many rounds."""


@runtime_checkable
class RunsChain(KeepsRounds, Protocol):
    """A learner that takes steps before every decision, where its belief has no closed form."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """How many steps a round takes."""

    @abstractmethod
    def normals(self, known: Knowledge, seen: int) -> int:
        """How many standard normals a step takes once `seen` rounds are remembered."""

    @abstractmethod
    def step(self, parameters: Parameters, state: State, normals: Array) -> State:
        """One step: normals (..., n)."""

    @abstractmethod
    def work(self, known: Knowledge) -> int:
        """Multiplications of a step for each round remembered, or what takes as long: an estimate."""
