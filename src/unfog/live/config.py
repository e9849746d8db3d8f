"""The terms of a live problem: checked, written as JSON, and turned into what its agents need.

The terms are the first event of a problem's log. They are read back from there whenever the problem is
opened, so that what was written is what is used. `Made` turns them into units, features, knowledge and
agents.

Spans of time may be given as people write them: "30m", "7d", or 90 (seconds).

Features and agents may be the caller's own, named by `module:name`. A log holds no code, and if such code
changed, a replay would compute something else. So the log keeps the SHA-256 of the source of its module, and
code that has changed is refused.

A problem that would not fit in memory is refused before it is made. The belief about theta takes most: a
matrix of m x m numbers, or a block of k x k for each arm. An agent holds several copies of it: the prior, the
current belief, the next one, and what it takes to undo a reward. The number of copies was measured with the
agents of the catalogue. Choosers without exact probabilities draw theta many times.
"""

import inspect
import re
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Any, NamedTuple, TypeAlias, TypedDict, TypeVar, get_type_hints

import numpy as np

from unfog import validation
from unfog.agents.agent import Agent, refuse_misfit
from unfog.agents.catalogue import EVERY, Catalogue, named, unknown_channel, without_channel
from unfog.agents.runner import propensity_draws
from unfog.channel import channel as channels
from unfog.channel.channel import Channel
from unfog.channel.knowledge import Knowledge
from unfog.features import FeatureMap, MapBuilder
from unfog.features.link import KINDS
from unfog.features.per_arm import PerArm
from unfog.features.registry import builder, check_map, in_blocks, prior
from unfog.maths.arrays import Array
from unfog.validation import LARGEST, REFERENCE, InputError, imported, shown

Span: TypeAlias = str | float | timedelta | None
Function = TypeVar("Function", bound=Callable[..., Any])
COMBINED: dict[str, Callable[[Sequence[float]], float]] = {
    "last": lambda rewards: rewards[-1],
    "first": lambda rewards: rewards[0],
    "sum": sum,
    "mean": lambda rewards: sum(rewards) / len(rewards),
    "max": max,
    "min": min,
}
LEARN = ("at_once", "after_wait")
LARGEST_SEED = 2**63 - 1


def paid(field: str, value: object, rewards: str, reward_range: Sequence[float] | None) -> float:
    """A reward that may be paid."""
    allowed = "0 or 1" if rewards == "bernoulli" else "a number"
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise InputError(field, shown(value), allowed)
    low, high = reward_range or (-LARGEST, LARGEST)
    try:
        found = float(value)
    except OverflowError:
        raise InputError(field, value, allowed) from None
    if not low <= found <= high or (rewards == "bernoulli" and found not in (0.0, 1.0)):
        validation.check_reward(field, np.asarray(found), rewards, low, high)
    return found


SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
LONGEST = 100 * 365 * 86_400.0
ALLOWED = 'a number of seconds, or text such as "45s", "30m", "12h", "7d", "2w"; None for no end'
_WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([smhdw])\s*")


def seconds(field: str, value: object) -> float | None:
    """A span in seconds; None stays None: no end."""
    if value is None:
        return None
    found = _read(value)
    if found is None or not 0 < found <= LONGEST:
        raise InputError(field, shown(value), ALLOWED)
    return found


def _read(value: object) -> float | None:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        return float(max(-LONGEST, min(value, 2 * LONGEST)))  # an integer may be too large for a float
    match = _WRITTEN.fullmatch(value) if isinstance(value, str) else None
    return None if match is None else float(match[1]) * SECONDS[match[2]]


def _context(field: str, value: Any) -> list[str]:
    if value is None:
        raise InputError(field, "not given", "a list of names, one for each coordinate")
    return validation.check_coordinates(field, value)


def _arm_size(field: str, value: Any) -> int | None:
    return None if value is None else validation.count(field, value, 1, 10_000)


def _features(field: str, value: Any) -> str:
    return path_of(field, value)


def _rewards(field: str, value: Any) -> str:
    return validation.one_of(field, value, KINDS)


def _reward_var(field: str, value: Any, rewards: str) -> float | None:
    if rewards == "bernoulli":
        if value is not None:
            raise InputError(field, value, "None: rewards of 0 or 1 have no variance of their own")
        return None
    return validation.positive(field, 1.0 if value is None else value)


def _range(field: str, value: Any, rewards: str) -> list[float] | None:
    if value is None:
        return None
    allowed = "None, or two numbers: the least and the largest reward"
    if rewards == "bernoulli":
        raise InputError(field, value, "None: rewards are 0 or 1")
    found = validation.numbers(field, value, allowed)
    if found.shape != (2,) or not found[0] < found[1]:
        raise InputError(field, value, allowed)
    return [float(x) for x in found]


def _numbers(field: str, value: Any) -> Any:
    """Shapes are checked by `Made`, which knows the size of theta."""
    return validation.numbers(field, value, "a number, a list or a matrix of numbers").tolist()


def _channel(field: str, value: Any, context: Sequence[str]) -> dict[str, Any] | None:  # noqa: ARG001
    return None if value is None else channels.channel(value, context).written()


def _agent(field: str, value: Any) -> str:
    return value.name if isinstance(value, Agent) and is_row(value) else path_of(field, value)


def _seed(field: str, value: Any) -> int:
    return secrets.randbits(32) if value is None else validation.count(field, value, 0, LARGEST_SEED)


def _share(field: str, value: Any) -> float:
    if validation.not_negative(field, value) > 1:
        raise InputError(field, value, "a number from 0 to 1")
    return float(value)


def _default_reward(
    field: str, value: Any, wait: float | None, rewards: str, reward_range: Sequence[float] | None
) -> float | None:
    if value is None:
        return None
    if wait is None:
        raise InputError(field, value, "None without a wait after which it would be learnt")
    return paid(field, value, rewards, reward_range)


def _learn(field: str, value: Any, wait: float | None, default_reward: float | None) -> str:
    if value is None:
        return "at_once" if default_reward is None else "after_wait"
    if validation.one_of(field, value, LEARN) == "after_wait" and wait is None:
        raise InputError(field, repr(value), "'at_once' without a wait")
    if value == "at_once" and default_reward is not None:
        raise InputError(field, repr(value), "'after_wait' where a default reward is set")
    return str(value)


def _combine(field: str, value: Any, learn: str, rewards: str) -> str:
    if validation.one_of(field, value, tuple(COMBINED)) not in ("last", "first") and learn == "at_once":
        raise InputError(field, repr(value), "'last' or 'first', unless learn is 'after_wait'")
    if value in ("sum", "mean") and rewards == "bernoulli":
        raise InputError(field, repr(value), "one of which rewards of 0 or 1 come: last, first, max, min")
    return str(value)


class Field(NamedTuple):
    """What is known of a term besides its name and its type in Python."""

    json: str  # its type in JSON, one of those in serve/schemas.py
    check: Callable[..., Any]  # (name, value, *needs) -> what the log says
    default: Any = None
    needs: tuple[str, ...] = ()  # terms that are checked before it, and that its check looks at
    follows: bool = False  # whether None is as it was drawn, or as it follows from other terms

    def written(self, name: str, value: Any, told: Mapping[str, Any]) -> Any:
        """The term as the log has it; `told` has those before it."""
        return self.check(name, value, *(told[other] for other in self.needs))


class GivenTerms(TypedDict, total=False):
    """The terms as a caller gives them. Stores, services, clients and the command line go by this table."""

    context: Annotated[Sequence[str], Field("names or null", _context)]
    arms: Annotated[Sequence[str] | Mapping[str, Any] | None, Field("arms", validation.check_arms)]
    arm_size: Annotated[int | None, Field("integer or null", _arm_size)]
    features: Annotated[str | MapBuilder, Field("reference", _features, "per_arm")]
    rewards: Annotated[str, Field("name", _rewards, "gaussian")]
    reward_var: Annotated[
        float | None, Field("number or null", _reward_var, needs=("rewards",), follows=True)
    ]
    reward_range: Annotated[tuple[float, float] | None, Field("range or null", _range, needs=("rewards",))]
    prior_mean: Annotated[Any, Field("numbers", _numbers, 0.0)]
    prior_cov: Annotated[Any, Field("numbers", _numbers, 1.0)]
    channel: Annotated[
        Channel | Knowledge | Mapping[str, Any] | None, Field("channel", _channel, needs=("context",))
    ]
    standardise: Annotated[bool, Field("boolean", validation.flag, True)]
    agent: Annotated[str | Agent, Field("reference", _agent, "unfog")]
    seed: Annotated[int | None, Field("integer or null", _seed, follows=True)]
    floor: Annotated[float, Field("share", _share, 0.05)]
    wait: Annotated[Span, Field("span", seconds)]
    default_reward: Annotated[
        float | None, Field("number or null", _default_reward, needs=("wait", "rewards", "reward_range"))
    ]
    learn: Annotated[
        str | None, Field("name or null", _learn, needs=("wait", "default_reward"), follows=True)
    ]
    combine: Annotated[str, Field("name", _combine, "last", needs=("learn", "rewards"))]
    reveal_within: Annotated[Span, Field("span", seconds, "7d")]


FIELDS: dict[str, Field] = {
    name: kind.__metadata__[0] for name, kind in get_type_hints(GivenTerms, include_extras=True).items()
}


def with_terms(function: Function) -> Function:
    """Have `help` and `inspect.signature` show each term that a function takes, with its default."""
    own = inspect.signature(function)
    named = [one for one in own.parameters.values() if one.kind is not one.VAR_KEYWORD]
    terms = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=FIELDS[name].default, annotation=kind)
        for name, kind in get_type_hints(GivenTerms).items()
    ]
    vars(function)["__signature__"] = own.replace(parameters=[*named, *terms])
    return function


class Terms(NamedTuple):
    """The terms, as they are used."""

    context: tuple[str, ...]  # names of the coordinates
    arms: dict[str, Any]  # name -> vector, or None where arms have none
    arm_size: int | None  # how many numbers an arm has, where arms come with each decision
    features: str
    rewards: str
    reward_var: float | None
    reward_range: tuple[float, float] | None
    prior_mean: Any
    prior_cov: Any
    channel: Channel | None
    standardise: bool
    agent: str
    seed: int
    floor: float
    wait: float | None  # seconds
    default_reward: float | None
    learn: str
    combine: str
    reveal_within: float | None  # seconds
    fingerprints: dict[str, str]
    uid: str  # of this problem, for ids of its decisions

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> "Terms":
        """From JSON."""
        told = {name: body[name] for name in cls._fields}
        told["context"] = tuple(told["context"])
        if told["reward_range"] is not None:
            told["reward_range"] = tuple(told["reward_range"])
        if told["channel"] is not None:
            told["channel"] = channels.channel(told["channel"], told["context"])
        return cls(**told)

    def check_reward(self, field: str, value: object) -> float:
        """A reward that may be paid."""
        return paid(field, value, self.rewards, self.reward_range)

    def combined(self, rewards: Sequence[float]) -> float:
        """Several rewards of one decision as one."""
        return float(COMBINED[self.combine](rewards))


def written(given: Mapping[str, Any]) -> dict[str, Any]:
    """The terms as JSON, from what a caller gives: every field checked, and what is left out filled in."""
    refuse_unknown(given)
    told: dict[str, Any] = {}
    for name, field in FIELDS.items():
        told[name] = field.written(name, given.get(name, field.default), told)
    return {**told, "fingerprints": _fingerprints(told), "uid": secrets.token_hex(8)}


def refuse_unknown(given: Mapping[str, Any]) -> None:
    """Name the first field that there is not."""
    for name in given:
        if name not in FIELDS:
            raise InputError(str(name), "no such field", ", ".join(FIELDS))


def refuse_other(body: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Complain of what is given and is not as the problem was made."""
    refuse_unknown(given)
    for name, value in given.items():
        field = FIELDS[name]
        if value is None and field.follows:
            continue
        now, was = field.written(name, value, body), body[name]
        if field.json == "channel" and isinstance(now, dict) and isinstance(was, dict):
            now = {part: now.get(part) for part in was}
        if now != was or (field.json == "arms" and list(now) != list(was)):
            raise InputError(name, value, f"as it was when the problem was made: {_shown(was)}")
    prints = _fingerprints(body)
    for name, was in body["fingerprints"].items():
        if prints.get(name) != was:
            raise InputError(name, f"{body[name]} has changed", "the code with which the problem was made")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _fingerprints(told: Mapping[str, Any]) -> dict[str, str]:
    """Fingerprints of the features and the agent, where they are the caller's own code."""
    own = [name for name, field in FIELDS.items() if field.json == "reference" and ":" in told[name]]
    found = {name: fingerprint(name, told[name]) for name in own}
    return {name: value for name, value in found.items() if value is not None}


def is_row(agent: Agent) -> bool:
    """Whether it is the row of the catalogue that has its name."""
    return EVERY.get(agent.name) == agent


def path_of(field: str, value: object) -> str:
    """A name, or the module:name of something importable that is given itself."""
    if isinstance(value, str):
        return value
    module, name = _home(value)
    known = sys.modules.get(module)
    if module == "__main__" or known is None or vars(known).get(name) is not value:
        allowed = "a name, or something that can be imported: module:name"
        raise InputError(field, shown(value), allowed)
    return f"{module}:{name}"


def _home(value: Any) -> tuple[str, str]:
    """Where it says that it was defined; nowhere, if it does not."""
    try:
        return str(value.__module__), str(value.__qualname__)
    except AttributeError:
        return "", ""


def fingerprint(field: str, path: str) -> str | None:
    """The SHA-256 of the source of a module:name; None for names of our own."""
    home = path.partition(":")[0]
    if not REFERENCE.fullmatch(path) or home in EVERY:
        return None
    imported(field, path, "a name, or module:name of something that can be imported")
    try:
        text = inspect.getsource(sys.modules[home])
    except (OSError, TypeError):
        return "no source"
    return sha256(text.encode()).hexdigest()


def refuse_changed(field: str, path: str, was: object) -> None:
    """Complain of code of the caller's own that is not what it was; names of our own have no fingerprint."""
    if was is not None and fingerprint(field, path) != was:
        raise InputError(field, f"{path} has changed", "the code with which it was made")


MOST = 1 << 30  # bytes that one agent of a problem may take
NUMBER = 8  # bytes
COPIES = 16  # of what is believed of theta, at most at a time, where it is in blocks or may be taken back
WHOLE = 4  # where it is one matrix of a learner that keeps no more
DRAWN = 4  # of each draw of theta, while a decision is made


def bytes_needed(agent: Agent, known: Knowledge) -> int:
    """Bytes, about; the arrays of priors are only asked for their shapes."""
    m, d = known.prior_mean.shape[-1], known.context_mean.shape[-1]
    theta = WHOLE * m * m if agent.learner.dense else COPIES * known.prior_cov.size
    draws = propensity_draws(agent.chooser) * agent.chooser.normals(known)
    return NUMBER * (theta + COPIES * d * d + DRAWN * draws)


def refuse_large(field: str, agent: Agent, known: Knowledge) -> None:
    """Complain of a problem of which an agent would take more than may be."""
    bytes_ = bytes_needed(agent, known)
    if bytes_ > MOST:
        m, d = known.prior_mean.shape[-1], known.context_mean.shape[-1]
        what = f"{m} features of contexts of {d} take {agent.name!r} about {bytes_ / 2**30:.1f} GiB of memory"
        raise InputError(field, what, f"fewer arms or coordinates: {MOST / 2**30:g} GiB at most")


PAIRS = (
    "{agent} learns from pairs: a reward waits for its true context, which must come whole."
    " Agents such as late take contexts in part, and rewards without."
)

ORDINARY = (
    "No channel is told, so readings are taken for the truth: an ordinary contextual bandit."
    " Pairs of noisy and true contexts from before (unfog.calibrate) are what it would need to do better."
)


class Made:
    """What the terms come to: units, features, knowledge and agents."""

    def __init__(self, terms: Terms, *, new: bool = True) -> None:
        """Refuse, by their names, terms that do not go together; new ones, too, for which memory is short."""
        self.terms, d = terms, len(terms.context)
        told = terms.channel
        self.channel = unknown_channel(d) if told is None else told
        standard = terms.standardise and told is not None
        self.units = (channels.standard if standard else channels.as_it_is)(self.channel)
        self._build = builder(terms.features)
        check_map(self.first, len(terms.arms) or 1, d)
        self.agent = self.agent_named("agent", terms.agent, self.first(), new="arms" if new else "")

    @cached_property
    def note(self) -> str:
        """What a caller should know of these terms."""
        if self.terms.channel is None:
            return ORDINARY
        return PAIRS.format(agent=self.agent.name) if self.agent.awaits_context else ""

    def first(self) -> FeatureMap:
        """The map of the arms that there are when the problem is made; of one, where arms come later."""
        terms = self.terms
        return self.features(terms.arms) if terms.arms else self.brought({"": [0.0] * (terms.arm_size or 0)})

    @property
    def per_arm(self) -> bool:
        """Whether an arm needs no numbers of its own, and brings features of its own."""
        return self.terms.features == "per_arm"

    def features(self, arms: Mapping[str, Any]) -> FeatureMap:
        """The map of these arms, in their order."""
        if self.per_arm:
            for name, vector in arms.items():
                if vector is not None:
                    allowed = "a name alone: with per_arm an arm has no numbers of its own"
                    raise InputError(f"arms.{name}", vector, allowed)
            return self._build(np.zeros((len(arms), len(self.terms.context))))
        return self._build(self._vectors("arms", arms))

    def brought(self, arms: Mapping[str, Any]) -> FeatureMap:
        """The map of arms that come with a decision."""
        if self.terms.arm_size is None:
            allowed = "names, or a mapping from names to vectors; or arm_size for arms that come later"
            raise InputError("arms", "none", allowed)
        if self.per_arm:
            allowed = "none with per_arm, where each arm that there is has features of its own"
            raise InputError("arm_size", self.terms.arm_size, allowed)
        return self._build(self._vectors("arms", arms))

    def _vectors(self, field: str, arms: Mapping[str, Any]) -> Array:
        """The numbers of these arms, (K, p)."""
        terms, shape = self.terms, self.arm_shape
        for name, vector in arms.items():
            if vector is None:
                allowed = f"a vector for each arm, with the features {terms.features!r}"
                raise InputError(f"{field}.{name}", "a name alone", allowed)
            found = np.shape(vector)
            if shape is not None and found != shape:
                raise InputError(
                    f"{field}.{name}", vector, f"numbers of shape {shape}, as the other arms have"
                )
        return np.asarray(list(arms.values()), dtype=np.float64)

    @cached_property
    def arm_shape(self) -> tuple[int, ...] | None:
        """The shape of an arm's numbers; None where arms have none."""
        terms = self.terms
        first = next(iter(terms.arms.values()), None)
        shape: tuple[int, ...] | None = (terms.arm_size,) if terms.arm_size else None
        shape = shape if first is None else np.shape(first)
        d = len(terms.context)
        if shape is not None and terms.features in ("product", "quadratic") and shape != (d,):
            raise InputError(
                "arms", f"vectors of shape {shape}", f"vectors of {d} numbers, one for each coordinate"
            )
        if shape is not None and terms.features == "matrix" and (len(shape) != 2 or shape[1] != d):
            raise InputError("arms", f"numbers of shape {shape}", f"matrices of rows of {d} numbers")
        return shape

    def whole(self, shown: Mapping[str, float]) -> Array:
        """A true context in the agents' units, (1, d): not a number where it is not known."""
        raw = np.array([[shown.get(name, np.nan) for name in self.terms.context]])
        return self.units.inside(raw)

    def knowledge(self, features: FeatureMap) -> Knowledge:
        """What agents are told, with a prior for these features."""
        terms = self.terms
        mean, cov = prior(features, terms.prior_mean, terms.prior_cov)
        variance = None if terms.reward_var is None else np.asarray(terms.reward_var)
        return self.channel.told(self.units, prior_mean=mean, prior_cov=cov, reward_var=variance)

    def refuse_large(self, field: str, agent: Agent, features: FeatureMap) -> None:
        """Complain of features of which an agent would take more memory than may be; nothing is made yet."""
        m = features.size
        shape: tuple[int, ...] = m, m
        if isinstance(features, PerArm) and in_blocks(features, self.terms.prior_cov):
            shape = features.arms, features.block, features.block
        mean, cov = (np.broadcast_to(np.zeros(()), size) for size in (m, shape))  # one number each
        told = self.channel.told(self.units, prior_mean=mean, prior_cov=cov, reward_var=None)
        refuse_large(field, agent, told)

    def agent_named(self, field: str, name: str, features: FeatureMap, *, new: str = "") -> Agent:
        """The agent of this name, if it can play here.

        Where it is new `new` is the field that is at fault if it would take too much memory.
        """
        (agent,) = named([name], field, Catalogue(self.terms.rewards))
        if agent.can.see_bias is not None:
            raise InputError(field, f"{name!r} is told the bias", "agents that need not be told the truth")
        if self.terms.channel is None:
            agent = without_channel(field, agent)
        if new:
            self.refuse_large(new, agent, features)
        known = self.knowledge(features)
        try:
            refuse_misfit(
                agent, known, features, rewards=self.terms.rewards, partial=False, has_bias=False, logged=True
            )
        except InputError as error:
            raise error.renamed(field) from None
        return agent


def channel_needed(channel: dict[str, Any] | None, agent: Agent) -> dict[str, Any] | None:
    """A channel as it is written, without samples of contexts that this agent never looks at."""
    if channel is None:
        return None
    unused = {"sample", "contexts"} - {*agent.denoiser.needs_knowledge}
    return {name: value for name, value in channel.items() if name not in unused}
