"""An agent is three parts that go together: what it can do follows from them, and what cannot be is refused.

Parts are checked when the agent is put together; the agent and the problem are checked again before anything
runs. Errors name the agent, the part, and what would do instead.
"""

from dataclasses import dataclass, is_dataclass, replace
from functools import cached_property
from typing import Any

from unfog import validation
from unfog.agents.base import (
    BoundsMean,
    Chooser,
    Corrects,
    Denoiser,
    EstimatesScales,
    ForecastsReading,
    Grows,
    HasCandidates,
    KeepsRounds,
    KnowsBias,
    Learner,
    LooksBack,
    PoolsUnits,
    Precomputes,
    PredictsReading,
    ReplacesTerms,
    ReportsChoice,
    Rewinds,
    RunsChain,
    ScalesContexts,
    SeesBias,
    Smooths,
    TakesNoise,
    UsesTime,
    ValuesReveals,
    WeighsHypotheses,
)
from unfog.channel.knowledge import Knowledge
from unfog.features import FeatureMap
from unfog.features.link import KINDS
from unfog.validation import InputError, check_keywords, one_of

PLACES: dict[str, Any] = {"denoiser": Denoiser, "learner": Learner, "chooser": Chooser}
NEEDED = {  # fields of `Knowledge`: what is missing, and what would provide it
    "contexts": ("a sample of contexts, and this world has none", ""),
    "sample": (
        "contexts of the past, and this world tells none",
        "a problem that does, with prior_contexts = 1000 for instance; or ",
    ),
    "mixture": (
        "a mixture of Gaussians for contexts, and this world tells none",
        "a problem that does, with prior_noisy_contexts = 2000 for instance; or ",
    ),
    "dynamics": ("constants of time, and this world tells none", "a world in time, such as airquality; or "),
}


@dataclass(frozen=True)
class Abilities:
    """What the parts of an agent can do beyond their contracts: for each ability the part that has it.

    None where no part has it. A part has an ability whose protocol it inherits (agents/base.py).

    >>> import unfog
    >>> agent = unfog.AGENTS["alg1"]
    >>> agent.can.estimate_bias is agent.denoiser, agent.can.revise is None
    (True, True)
    """

    see_bias: SeesBias | None  # be shown the true bias
    predict_reading: PredictsReading | None  # say what the next noisy context will be like
    forecast_reading: ForecastsReading | None  # say more of that, at a higher cost
    bound_error: BoundsMean | None  # say how far off the mean of a context may be
    precompute: Precomputes | None  # compute once what all questions about a reading share
    estimate_bias: KnowsBias | None  # say what is believed of the bias
    weigh_hypotheses: WeighsHypotheses | None  # weigh hypotheses about the channel
    use_time: UsesTime | None  # use the time of a reading, and its own noise
    take_noise: TakesNoise | None  # use a reading's own noise, where time does not matter
    value_reveal: ValuesReveals | None  # say what a true context would be worth
    look_back: tuple[Rewinds, LooksBack] | None  # denoise past rounds again before a decision
    revise: tuple[Corrects, ReplacesTerms] | None  # learn from true contexts late, in any order, or in part
    revisit: tuple[Smooths, ReplacesTerms] | None  # learn from a round again some rounds later
    sample: RunsChain | None  # draw theta by steps of a chain before a decision
    keep_rounds: KeepsRounds | None  # keep past rounds
    grow: Grows | None  # accept more arms
    pool: PoolsUnits | None  # learn from the readings of all units together
    scale_contexts: ScalesContexts | None  # have contexts on the scale of readings
    hedge: HasCandidates | None  # weigh candidates by how well each predicts rewards
    estimate_scales: EstimatesScales | None  # learn the scales of theta's prior and of rewards
    report_choice: ReportsChoice | None  # report to the learner how an arm was chosen

    @classmethod
    def of(cls, denoiser: Denoiser, learner: Learner, chooser: Chooser) -> "Abilities":
        """The abilities that these three parts declare."""
        replaces_terms = learner if isinstance(learner, ReplacesTerms) else None
        return cls(
            see_bias=denoiser if isinstance(denoiser, SeesBias) else None,
            predict_reading=denoiser if isinstance(denoiser, PredictsReading) else None,
            forecast_reading=denoiser if isinstance(denoiser, ForecastsReading) else None,
            bound_error=denoiser if isinstance(denoiser, BoundsMean) else None,
            precompute=denoiser if isinstance(denoiser, Precomputes) else None,
            estimate_bias=denoiser if isinstance(denoiser, KnowsBias) else None,
            weigh_hypotheses=denoiser if isinstance(denoiser, WeighsHypotheses) else None,
            use_time=denoiser if isinstance(denoiser, UsesTime) else None,
            take_noise=denoiser if isinstance(denoiser, TakesNoise) else None,
            value_reveal=denoiser if isinstance(denoiser, ValuesReveals) else None,
            look_back=(denoiser, learner)
            if isinstance(denoiser, Rewinds) and isinstance(learner, LooksBack)
            else None,
            revise=(denoiser, replaces_terms)
            if replaces_terms and denoiser.sees_context and isinstance(denoiser, Corrects)
            else None,
            revisit=(denoiser, replaces_terms)
            if replaces_terms and isinstance(denoiser, Smooths) and denoiser.lag
            else None,
            sample=learner if isinstance(learner, RunsChain) else None,
            keep_rounds=learner if isinstance(learner, KeepsRounds) else None,
            grow=learner if isinstance(learner, Grows) else None,
            pool=denoiser if isinstance(denoiser, PoolsUnits) else None,
            scale_contexts=denoiser if isinstance(denoiser, ScalesContexts) else None,
            hedge=denoiser if isinstance(denoiser, HasCandidates) else None,
            estimate_scales=learner if isinstance(learner, EstimatesScales) else None,
            report_choice=chooser if learner.needs_report and isinstance(chooser, ReportsChoice) else None,
        )


@check_keywords
@dataclass(frozen=True)
class Agent:
    """A named algorithm: three parts, and all there is to say of them.

    >>> import unfog
    >>> agent = unfog.Agent("mine", unfog.denoise.Exact(), unfog.learn.Hetero(), unfog.choose.Ucb())
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=50, trials=20, seed=0)
    >>> result.agent.values.tolist()
    ['mine', 'naive']
    """

    name: str
    denoiser: Denoiser
    learner: Learner
    chooser: Chooser
    summary: str = ""
    reference: str = ""
    binary_learner: Learner | None = None  # the learner of this row for rewards of 0 or 1, where it has one
    label: str = ""  # in figures; by default the name
    clip_sd: float | None = None  # how many deviations a reading or a reward may be off: agents/round.py

    def __post_init__(self) -> None:
        """Check the parts by themselves, and with each other."""
        if not isinstance(self.name, str) or not self.name.strip() or not self.name.isprintable():
            raise InputError("name", repr(self.name), "a word, on one line")
        for role in PLACES:
            check_part(self.name, role, vars(self)[role])
        if self.binary_learner is not None:
            check_part(self.name, "binary_learner", self.binary_learner)
            if self.binary_learner.rewards != "bernoulli":
                raise InputError(
                    f"{self.name}.binary_learner",
                    repr(self.binary_learner),
                    "a learner for rewards of 0 or 1",
                )
        for learner in (self.learner, self.binary_learner or self.learner):
            self._check_beside(learner)
        self._check_chooser()
        if self.clip_sd is not None:
            self._check_clip_sd(self.clip_sd)

    def _check_beside(self, learner: Learner) -> None:
        """Refuse a learner that does not go with the denoiser or the chooser."""
        field = f"{self.name}.learner"
        if missing := learner.misses(self.denoiser):
            what = f"{learner.name!r} beside the denoiser {self.denoiser.name!r}"
            raise InputError(field, what, f"beside it {missing}")
        reports = self.chooser.reports if isinstance(self.chooser, ReportsChoice) else ""
        if isinstance(self.denoiser, HasCandidates) and not isinstance(learner, ReplacesTerms):
            what = f"{learner.name!r} beside the denoiser {self.denoiser.name!r}, which has candidates"
            allowed = "beside it a learner that can replace terms, such as empiricalbayes or revisable"
            raise InputError(field, what, allowed)
        if learner.needs_report and learner.needs_report != reports:
            instead = f", which reports the {reports}" if reports else ""
            what = f"{learner.name!r} beside the chooser {self.chooser.name!r}{instead}"
            chooser = f"a chooser that reports the {learner.needs_report} of each choice"
            allowed = f"beside it {chooser} (ReportsChoice)"
            raise InputError(field, what, allowed)

    def _check_chooser(self) -> None:
        """Refuse a chooser that does not go with the learner; `binary_learner` is checked once it learns."""
        learner, chooser = self.learner, self.chooser
        if missing := chooser.misses(learner):
            what = f"{chooser.name!r} beside the learner {learner.name!r}"
            raise InputError(f"{self.name}.chooser", what, f"beside it {missing}")
        if (self.can.hedge or self.can.estimate_scales) and not chooser.takes_candidates:
            what = f"{chooser.name!r} beside {self.denoiser.name!r} and {learner.name!r}"
            allowed = "beside them one that takes candidates, such as randucb"
            raise InputError(f"{self.name}.chooser", what, allowed)
        if learner.own_belief and not any(isinstance(learner, kind) for kind in chooser.needs_learner):
            what = f"{learner.name!r} beside the chooser {chooser.name!r}"
            raise InputError(f"{self.name}.learner", what, "beside it the chooser that its belief is for")

    def _check_clip_sd(self, clip_sd: float) -> None:
        """Refuse `clip_sd` where the parts do not say what readings or rewards they expect."""
        field = f"{self.name}.clip_sd"
        validation.positive(field, clip_sd)
        if self.can.predict_reading is None:
            what = f"{clip_sd} beside the denoiser {self.denoiser.name!r}"
            raise InputError(field, what, "none, or a denoiser that expects readings (PredictsReading)")
        if self.learner.rewards == "gaussian" and type(self.learner).noise is Learner.noise:
            what = f"{clip_sd} beside the learner {self.learner.name!r}"
            raise InputError(field, what, "none, or a learner that says how noisy rewards are (noise)")

    @property
    def sees_context(self) -> bool:
        """Whether it is shown true contexts, after their rewards."""
        return self.denoiser.sees_context

    @property
    def takes_gaps(self) -> bool:
        """Whether it knows which coordinates were lost."""
        return self.denoiser.takes_gaps

    @cached_property
    def can(self) -> Abilities:
        """What its parts can do beyond their contracts, looked up once."""
        return Abilities.of(self.denoiser, self.learner, self.chooser)

    @property
    def interpreted(self) -> str:
        """Why no compiled engine can play it; empty where any can."""
        parts = self.denoiser, self.learner, self.chooser
        return next((part.interpreted for part in parts if part.interpreted), "")

    @property
    def takes_noise(self) -> bool:
        """Whether a reading may have a noise of its own.

        Not where the learner looks back: it denoises all past readings alike.
        """
        return self.can.use_time is not None or (
            self.can.take_noise is not None and self.can.look_back is None
        )

    @cached_property
    def awaits_context(self) -> bool:
        """Whether it learns nothing from a round before all of its true context is known."""
        return self.sees_context and self.can.revise is None

    def same_as(self, other: "Agent") -> bool:
        """Whether both have the same parts and the same `clip_sd`."""
        return all(vars(self)[role] == vars(other)[role] for role in (*PLACES, "clip_sd"))

    def for_rewards(self, kind: str) -> "Agent":
        """The same agent with its learner for this kind of rewards; KeyError where it has none."""
        if kind == self.learner.rewards:
            return self
        if self.binary_learner is None or self.binary_learner.rewards != kind:
            raise KeyError(self.name)
        return replace(self, learner=self.binary_learner)


def check_part(agent: str, role: str, part: Any) -> None:
    """Raise InputError if this is not a part for this role, and say what would be one."""
    contract, field = PLACES.get(role, Learner), f"{agent}.{role}"
    if isinstance(part, type):
        raise InputError(field, f"the class {part.__name__}", f"an instance: {part.__name__}()")
    lacks = ", ".join(name for name in _members(contract) if name not in dir(part))
    if lacks:
        allowed = f"an instance of a frozen dataclass that inherits {contract.__name__} of agents/base.py"
        raise InputError(field, f"{type(part).__name__} has no {lacks}", allowed)
    if not _is_frozen(part):
        raise InputError(field, f"{type(part).__name__} can be changed", "a frozen dataclass")
    try:
        hash(part)
    except TypeError as error:
        allowed = "settings that can be hashed: numbers, words, tuples"
        raise InputError(field, f"{type(part).__name__}: {error}", allowed) from None
    if contract is Learner:
        _check_learner(field, part)
    if contract is Chooser:
        _check_chooser(field, part)


def _check_learner(field: str, learner: Learner) -> None:
    """Check what the learner is for, and what it needs."""
    one_of(f"{field}.rewards", learner.rewards, KINDS)
    for name, needs in (("needs", learner.needs), ("needs_features", learner.needs_features)):
        _check_kinds(f"{field}.{name}", needs, "a tuple of abilities: (Rewinds,)")
    if learner.needs_report != "":
        _check_word(f"{field}.needs_report", learner.needs_report)


def _check_chooser(field: str, chooser: Chooser) -> None:
    """Check what the chooser needs, and what it reports."""
    _check_kinds(f"{field}.needs_learner", chooser.needs_learner, "a tuple of kinds of learner")
    if isinstance(chooser, ReportsChoice):
        _check_word(f"{field}.reports", chooser.reports)


def _check_kinds(field: str, needs: object, allowed: str) -> None:
    if not isinstance(needs, tuple) or not all(isinstance(kind, type) for kind in needs):
        raise InputError(field, repr(needs), allowed)


def _check_word(field: str, word: object) -> None:
    """Check the word for what a chooser reports and a learner needs."""
    if not isinstance(word, str) or not word.strip():
        raise InputError(
            field, repr(word), "a word for what is reported of each choice, such as 'probability'"
        )


def _is_frozen(part: Any) -> bool:
    """Whether its class itself, and not only a parent, is a frozen dataclass."""
    params = vars(type(part)).get("__dataclass_params__")
    return is_dataclass(part) and params is not None and bool(params.frozen)


def _members(contract: Any) -> list[str]:
    """The public names that a contract asks for."""
    own = [
        name for kind in contract.__mro__ for name in (*vars(kind), *vars(kind).get("__annotations__", ()))
    ]
    return sorted({name for name in own if not name.startswith("_")})


def _check_not_logged(agent: Agent, logged: bool) -> None:
    """Raise for an agent that needs a report of every choice: a log has none."""
    if logged and agent.can.report_choice is not None:
        what = f"{agent.name!r} needs a report of how each arm was chosen"
        raise InputError("agents", what, "agents that learn from arms and rewards alone")


def _check_knowledge(agent: Agent, known: Knowledge) -> None:
    """Raise InputError if the denoiser needs to know more of contexts than is told."""
    if agent.denoiser.needs_moments and not known.has_moments:
        what = f"{agent.name!r} must be told how contexts spread and devices differ, and is not"
        allowed = "hedged, which learns it; or Reading(noise_sd, bias_sd, mean, sd) for every coordinate"
        raise InputError("agents", what, allowed)
    for field in agent.denoiser.needs_knowledge:
        if field not in known.beyond_moments:
            what, would_do = NEEDED[field]
            allowed = "agents that know the Gaussian law of contexts alone, such as unfog-oracle and unfog"
            raise InputError("agents", f"{agent.name!r} needs {what}", would_do + allowed)


def check_fit(
    agent: Agent,
    known: Knowledge,
    features: FeatureMap,
    *,
    rewards: str,
    partial: bool,
    has_bias: bool,
    on_request: bool = False,
    logged: bool = False,
) -> None:
    """Raise InputError if an agent cannot play a problem.

    `partial`: some true contexts come late, or never; `has_bias`: there is a true bias to be told;
    `on_request`: true contexts are shown only on request; `logged`: arms come from a log, which does not say
    how they were chosen.
    """
    _check_not_logged(agent, logged)
    if agent.learner.rewards != rewards:
        what = f"{agent.name!r} learns from {agent.learner.rewards} rewards"
        raise InputError("agents", what, f"agents for {rewards} rewards")
    _check_knowledge(agent, known)
    try:
        agent.learner.setup(known)
        agent.learner.check(known, features)
    except InputError as error:
        raise InputError.prefixed(agent.name, error) from None
    if partial and agent.awaits_context:
        who = f"the learner of {agent.name!r}" if isinstance(agent.denoiser, Corrects) else repr(agent.name)
        allowed = "agents that take true contexts late and in part, or go without"
        raise InputError("agents", f"{who} needs every true context at once", allowed)
    if on_request and agent.sees_context and agent.can.value_reveal is None:
        allowed = "agents that can, such as temporal, or that are shown none"
        raise InputError("agents", f"{agent.name!r} cannot say what a true context is worth", allowed)
    if agent.can.see_bias is not None and not has_bias:
        allowed = "agents that need not be told: this world has none"
        raise InputError("agents", f"{agent.name!r} is told the bias", allowed)
