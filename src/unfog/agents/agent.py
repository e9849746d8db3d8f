"""An agent is three parts that go together: what it can do follows from them, and what cannot be is refused.

Parts are looked at once, when the agent is made; the agent and the problem once more, before anything runs.
Complaints name the agent, the part, and what would do.
"""

from dataclasses import dataclass, is_dataclass, replace
from functools import cached_property
from types import ModuleType
from typing import Any

from unfog import validation
from unfog.agents.base import (
    Appraises,
    Bounds,
    Chain,
    Chooser,
    Corrects,
    Denoiser,
    Expects,
    Foresees,
    Keeps,
    KnowsBias,
    Learner,
    LooksBack,
    Privileged,
    Readies,
    Rewinds,
    Smooths,
    TakesBack,
    Tells,
    Timed,
    Weighs,
)
from unfog.channel.knowledge import Knowledge
from unfog.features import FeatureMap
from unfog.features.link import KINDS
from unfog.validation import InputError, one_of

PLACES: dict[str, Any] = {"denoiser": Denoiser, "learner": Learner, "chooser": Chooser}
ROOMS: dict[Any, str] = {Denoiser: "denoise", Learner: "learn", Chooser: "choose"}
NEEDED = {  # of `Knowledge`, where an agent needs it: the complaint, and what would do besides other agents
    "contexts": ("a sample of contexts, and this world has none", ""),
    "sample": (
        "contexts of the past, and this world tells none",
        "a problem that does, with told_contexts = 1000 for instance; or ",
    ),
    "mixture": (
        "a mixture of Gaussians for contexts, and this world tells none",
        "a problem that does, with told_noisy = 2000 for instance; or ",
    ),
    "tempo": ("constants of time, and this world tells none", "a world in time, such as airquality; or "),
}
DERIVED = {
    "reveals": "a denoiser that sees true contexts, such as unfog.denoise.Exact(pairs=True)",
    "privileged": "a denoiser that is told the bias, such as unfog.denoise.KnownBias()",
}


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
    binary: Learner | None = None  # the learner of this row for rewards of 0 or 1, where it has one
    label: str = ""  # in figures; the name unless told
    limit: float | None = None  # how many deviations a reading or a reward may be off: agents/round.py

    def __new__(cls, *_: object, **given: object) -> "Agent":
        """Refuse what follows from the parts by now."""
        for field, instead in DERIVED.items():
            if field in given:
                raise InputError(
                    field, repr(given[field]), f"nothing; it follows from the denoiser: {instead}"
                )
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Check the parts by themselves, and with each other."""
        if not isinstance(self.name, str) or not self.name.strip() or not self.name.isprintable():
            raise InputError("name", repr(self.name), "a word, on one line")
        for place in PLACES:
            check_part(self.name, place, vars(self)[place])
        if self.binary is not None:
            check_part(self.name, "binary", self.binary)
            if self.binary.rewards != "bernoulli":
                raise InputError(f"{self.name}.binary", repr(self.binary), "a learner for rewards of 0 or 1")
        for learner in (self.learner, self.binary or self.learner):
            self._check_beside(learner)
        self._check_chooser()
        if self.limit is not None:
            self._check_limit(self.limit)

    def _check_beside(self, learner: Learner) -> None:
        field = f"{self.name}.learner"
        if missing := learner.misses(self.denoiser):
            what = f"{learner.name!r} beside the denoiser {self.denoiser.name!r}"
            raise InputError(field, what, f"beside it {missing}")
        told = self.chooser.tells if isinstance(self.chooser, Tells) else ""
        if learner.hears and learner.hears != told:
            instead = f", which tells the {told}" if told else ""
            what = f"{learner.name!r} beside the chooser {self.chooser.name!r}{instead}"
            allowed = f"beside it a chooser that tells the {learner.hears} of each choice (Tells)"
            raise InputError(field, what, allowed)

    def _check_chooser(self) -> None:
        """The learner for rewards of 0 or 1 is looked at once it is the learner, with settings of its own."""
        learner, chooser = self.learner, self.chooser
        if missing := chooser.misses(learner):
            what = f"{chooser.name!r} beside the learner {learner.name!r}"
            raise InputError(f"{self.name}.chooser", what, f"beside it {missing}")
        if learner.own_belief and not any(isinstance(learner, kind) for kind in chooser.needs_learner):
            what = f"{learner.name!r} beside the chooser {chooser.name!r}"
            raise InputError(f"{self.name}.learner", what, "beside it the chooser that its belief is for")

    def _check_limit(self, limit: float) -> None:
        field = f"{self.name}.limit"
        validation.positive(field, limit)
        if self.expects is None:
            what = f"{limit} beside the denoiser {self.denoiser.name!r}"
            raise InputError(field, what, "none, or a denoiser that expects readings (Expects)")
        if self.learner.rewards == "gaussian" and type(self.learner).noise is Learner.noise:
            what = f"{limit} beside the learner {self.learner.name!r}"
            raise InputError(field, what, "none, or a learner that says how noisy rewards are (noise)")

    @property
    def sees_context(self) -> bool:
        """Whether it is shown true contexts after their rewards."""
        return self.denoiser.sees_context

    @property
    def takes_gaps(self) -> bool:
        """Whether it knows which coordinates were lost."""
        return self.denoiser.takes_gaps

    @cached_property
    def privileged(self) -> Privileged | None:
        """Its denoiser, where that is told the bias."""
        return self.denoiser if isinstance(self.denoiser, Privileged) else None

    @cached_property
    def expects(self) -> Expects | None:
        """Its denoiser, where that says what the next noisy context will be like."""
        return self.denoiser if isinstance(self.denoiser, Expects) else None

    @cached_property
    def bounds(self) -> Bounds | None:
        """Its denoiser, where that says how far off the mean of a context may be."""
        return self.denoiser if isinstance(self.denoiser, Bounds) else None

    @cached_property
    def foresees(self) -> Foresees | None:
        """Its denoiser, where that can say more of it, at a price."""
        return self.denoiser if isinstance(self.denoiser, Foresees) else None

    @cached_property
    def readies(self) -> Readies | None:
        """Its denoiser, where that works something out once for a reading."""
        return self.denoiser if isinstance(self.denoiser, Readies) else None

    @cached_property
    def knows_bias(self) -> KnowsBias | None:
        """Its denoiser, where that says what it believes of the bias."""
        return self.denoiser if isinstance(self.denoiser, KnowsBias) else None

    @cached_property
    def weighs(self) -> Weighs | None:
        """Its denoiser, where that weighs hypotheses."""
        return self.denoiser if isinstance(self.denoiser, Weighs) else None

    @cached_property
    def timed(self) -> Timed | None:
        """Its denoiser, where it matters to that when a reading was taken."""
        return self.denoiser if isinstance(self.denoiser, Timed) else None

    @cached_property
    def revisits(self) -> tuple[Smooths, TakesBack] | None:
        """Its denoiser and its learner, where rounds are learnt from again after some others."""
        smooth, able = self.denoiser, self.learner
        if isinstance(smooth, Smooths) and isinstance(able, TakesBack) and smooth.lag:
            return smooth, able
        return None

    @cached_property
    def appraises(self) -> Appraises | None:
        """Its denoiser, where that says what a true context is worth."""
        return self.denoiser if isinstance(self.denoiser, Appraises) else None

    @cached_property
    def looks_back(self) -> tuple[Rewinds, LooksBack] | None:
        """Its denoiser and its learner, where past rounds are denoised anew."""
        able = isinstance(self.denoiser, Rewinds) and isinstance(self.learner, LooksBack)
        return (self.denoiser, self.learner) if able else None  # type: ignore[return-value]

    @cached_property
    def keeps(self) -> Keeps | None:
        """Its learner, where that keeps past rounds."""
        return self.learner if isinstance(self.learner, Keeps) else None

    @cached_property
    def tells(self) -> Tells | None:
        """Its chooser, where the learner must hear how arms are chosen."""
        return self.chooser if self.learner.hears and isinstance(self.chooser, Tells) else None

    @property
    def interpreted(self) -> str:
        """Why no compiled engine can play it; empty where any can."""
        parts = self.denoiser, self.learner, self.chooser
        return next((part.interpreted for part in parts if part.interpreted), "")

    @cached_property
    def chain(self) -> Chain | None:
        """Its learner, where that takes steps before a decision."""
        return self.learner if isinstance(self.learner, Chain) else None

    @cached_property
    def revises(self) -> tuple[Corrects, TakesBack] | None:
        """Its denoiser and its learner, where true contexts are taken in late, in any order, or in part."""
        able = isinstance(self.denoiser, Corrects) and isinstance(self.learner, TakesBack)
        return (self.denoiser, self.learner) if able and self.sees_context else None  # type: ignore[return-value]

    @cached_property
    def awaits_context(self) -> bool:
        """Whether it learns nothing from a round before all of its true context is known."""
        return self.sees_context and self.revises is None

    def same_as(self, other: "Agent") -> bool:
        """Whether both have the same parts and the same limit."""
        return all(vars(self)[place] == vars(other)[place] for place in (*PLACES, "limit"))

    def for_rewards(self, kind: str) -> "Agent":
        """The same agent with its learner for this kind of rewards; KeyError where it has none."""
        if kind == self.learner.rewards:
            return self
        if self.binary is None or self.binary.rewards != kind:
            raise KeyError(self.name)
        return replace(self, learner=self.binary)


def check_part(agent: str, place: str, part: Any) -> None:
    """Refuse what is no part, and say what would be one."""
    contract, field = PLACES.get(place, Learner), f"{agent}.{place}"
    if isinstance(part, ModuleType):
        own = (one for one in vars(part).values() if isinstance(one, type) and contract in one.__mro__)
        room = f"unfog.{ROOMS[contract]}" if part.__name__.startswith("unfog.") else part.__name__
        inside = [f"{room}.{one.__name__}()" for one in own if one.__module__ == part.__name__]
        hint = " or ".join(inside) or "an instance of its class"
        raise InputError(field, f"the module {part.__name__}", f"a part, which is a value: {hint}")
    if isinstance(part, type):
        raise InputError(field, f"the class {part.__name__}", f"an instance: {part.__name__}()")
    lacks = ", ".join(name for name in _members(contract) if name not in dir(part))
    if lacks:
        made = f"an instance of a frozen dataclass that inherits {contract.__name__} of agents/base.py"
        raise InputError(field, f"{type(part).__name__} has no {lacks}", made)
    if not _frozen(part):
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
    """What it is for, and what it needs."""
    one_of(f"{field}.rewards", learner.rewards, KINDS)
    for place, needs in (("needs", learner.needs), ("needs_features", learner.needs_features)):
        _check_kinds(f"{field}.{place}", needs, "a tuple of abilities: (Rewinds,)")
    if learner.hears != "":
        _check_word(f"{field}.hears", learner.hears)


def _check_chooser(field: str, chooser: Chooser) -> None:
    """What it needs, and what it tells."""
    _check_kinds(f"{field}.needs_learner", chooser.needs_learner, "a tuple of kinds of learner")
    if isinstance(chooser, Tells):
        _check_word(f"{field}.tells", chooser.tells)


def _check_kinds(field: str, needs: object, allowed: str) -> None:
    if not isinstance(needs, tuple) or not all(isinstance(kind, type) for kind in needs):
        raise InputError(field, repr(needs), allowed)


def _check_word(field: str, word: object) -> None:
    """What is told of a choice has a name, so that both sides mean the same."""
    if not isinstance(word, str) or not word.strip():
        raise InputError(field, repr(word), "a word for what is told of each choice, such as 'probability'")


def _frozen(part: Any) -> bool:
    """Whether it is made by a frozen dataclass, of its own and not of a parent alone."""
    params = vars(type(part)).get("__dataclass_params__")
    return is_dataclass(part) and params is not None and bool(params.frozen)


def _members(contract: Any) -> list[str]:
    """What a contract asks for by name."""
    own = [
        name for kind in contract.__mro__ for name in (*vars(kind), *vars(kind).get("__annotations__", ()))
    ]
    return sorted({name for name in own if not name.startswith("_")})


def _refuse_unheard(agent: Agent, logged: bool) -> None:
    if logged and agent.tells is not None:
        what = f"{agent.name!r} must hear how each arm was chosen"
        raise InputError("agents", what, "agents that learn from arms and rewards alone")


def refuse_misfit(
    agent: Agent,
    known: Knowledge,
    features: FeatureMap,
    *,
    rewards: str,
    partial: bool,
    has_bias: bool,
    asked: bool = False,
    logged: bool = False,
) -> None:
    """Complain of an agent that cannot play a problem.

    `partial`: some true contexts come late, or never; `has_bias`: there is a true bias to be told; `asked`:
    true contexts are shown to who asks for them; `logged`: arms come from a log, which does not say how they
    were chosen.
    """
    _refuse_unheard(agent, logged)
    if agent.learner.rewards != rewards:
        what = f"{agent.name!r} learns from {agent.learner.rewards} rewards"
        raise InputError("agents", what, f"agents for {rewards} rewards")
    for field in agent.denoiser.needs_knowledge:
        if field not in known.beyond_moments:
            what, would_do = NEEDED[field]
            allowed = "agents that know the Gaussian law of contexts alone, such as unfog-oracle and unfog"
            raise InputError("agents", f"{agent.name!r} needs {what}", would_do + allowed)
    try:
        agent.learner.setup(known)
        agent.learner.check(known, features)
    except InputError as error:
        raise InputError.prefixed(agent.name, error) from None
    if partial and agent.awaits_context:
        who = f"the learner of {agent.name!r}" if isinstance(agent.denoiser, Corrects) else repr(agent.name)
        allowed = "agents that take true contexts late and in part, or go without"
        raise InputError("agents", f"{who} needs every true context at once", allowed)
    if asked and agent.sees_context and agent.appraises is None:
        allowed = "agents that can, such as temporal, or that are shown none"
        raise InputError("agents", f"{agent.name!r} cannot say what a true context is worth", allowed)
    if agent.privileged is not None and not has_bias:
        allowed = "agents that need not be told: this world has none"
        raise InputError("agents", f"{agent.name!r} is told the bias", allowed)
