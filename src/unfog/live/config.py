"""The terms of a live problem: checked, written as JSON, and turned into what its agents need.

The terms are the first event of a problem's log. Whenever the problem is opened they are read from there, so
that the terms that are used are those that were written. `PreparedProblem` turns them into units, features,
knowledge and agents.

Spans of time may be given as people write them: "30m", "7d", or 90 (seconds).

Features and agents may be the caller's own, named by `module:name`. A log holds no code, and if such code
changed, a replay would compute something else. So the log keeps the SHA-256 of the source of its module, and
code that has changed is refused.

A problem that would not fit in memory is refused before it is created. The belief about theta takes most: a
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
from unfog.agents.agent import Agent, check_fit
from unfog.agents.catalogue import EVERY, Catalogue, select_rows, unknown_channel, without_channel
from unfog.agents.runner import propensity_draws
from unfog.channel import channel as channels
from unfog.channel.channel import Channel, Units
from unfog.channel.context import LIKELY_OPTIONS, ContextSpec, read_context
from unfog.channel.knowledge import Knowledge, limit_cov
from unfog.features import FeatureMap, MapBuilder
from unfog.features.per_arm import PerArm, effect_groups
from unfog.features.registry import builder, check_map, in_blocks, prior
from unfog.maths.arrays import Array
from unfog.validation import LARGEST, REFERENCE, InputError, display, import_object

Span: TypeAlias = str | float | timedelta | None
Function = TypeVar("Function", bound=Callable[..., Any])
AGGREGATIONS: dict[str, Callable[[Sequence[float]], float]] = {
    "last": lambda rewards: rewards[-1],
    "first": lambda rewards: rewards[0],
    "sum": sum,
    "mean": lambda rewards: sum(rewards) / len(rewards),
    "max": max,
    "min": min,
}
REWARDS = {"numeric": "gaussian", "binary": "bernoulli"}  # what agents call them
UPDATES = ("immediate", "at_close")
LARGEST_SEED = 2**63 - 1


def check_not_missing(field: str, value: object) -> None:
    """Raise InputError if a reward is missing."""
    if validation.is_missing(value):
        raise InputError(field, display(value), "a number; while there is no reward, report none")


def paid(field: str, value: object, rewards: str, reward_range: Sequence[float] | None) -> float:
    """The reward as a float; InputError if it is none that may be reported."""
    check_not_missing(field, value)
    allowed = "0 or 1" if rewards == "binary" else "a number"
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        near = validation.nearest_number(value)
        raise InputError(field, display(value), allowed, near)
    low, high = reward_range or (-LARGEST, LARGEST)
    try:
        reward = float(value)
    except OverflowError:
        raise InputError(field, value, allowed) from None
    if not low <= reward <= high or (rewards == "binary" and reward not in (0.0, 1.0)):
        validation.check_reward(field, np.asarray(reward), REWARDS[rewards], low, high)
    return reward


def check_sd(field: str, value: object) -> float:
    """The standard deviation as a float; InputError unless its square is a variance that can be used."""
    sd = validation.positive(field, value)
    if not validation.SMALLEST <= sd**2 <= LARGEST:
        raise InputError(field, value, f"a number from {validation.SMALLEST**0.5:g} to {LARGEST**0.5:g}")
    return sd


def check_noise_sd(field: str, value: object) -> float:
    """The standard deviation of a reading's noise, which is 0 where the reading is exact."""
    return 0.0 if validation.not_negative(field, value) == 0 else check_sd(field, value)


SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
LONGEST = 100 * 365 * 86_400.0
ALLOWED = 'a number of seconds, or text such as "45s", "30m", "12h", "7d", "2w"; None for no end'
_SPAN_PATTERN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([smhdw])\s*")


def seconds(field: str, value: object) -> float | None:
    """A span in seconds; None, which means no end, stays None."""
    if value is None:
        return None
    span = _parse_span(value)
    if span is None or not 0 < span <= LONGEST:
        raise InputError(field, display(value), ALLOWED)
    return span


def _parse_span(value: object) -> float | None:
    """A span in seconds, unchecked; None if it cannot be read."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        return float(max(-LONGEST, min(value, 2 * LONGEST)))  # an integer may be too large for a float
    match = _SPAN_PATTERN.fullmatch(value) if isinstance(value, str) else None
    return None if match is None else float(match[1]) * SECONDS[match[2]]


def _check_context(field: str, value: Any) -> list[str] | dict[str, Any]:
    """A list of names; or the table of what is said of each coordinate."""
    if isinstance(value, Mapping | ContextSpec):
        return read_context(field, value).to_json()
    if value is None:
        allowed = "a mapping from names of coordinates to how far one reading may be off; or a list of names"
        raise InputError(field, "not given", allowed)
    return validation.check_coordinates(field, value)


def _check_arm_size(field: str, value: Any) -> int | None:
    return None if value is None else validation.count(field, value, 1, 10_000)


def _check_features(field: str, value: Any) -> str:
    return path_of(field, value)


def _check_rewards(field: str, value: Any) -> str:
    return validation.one_of(field, value, tuple(REWARDS))


def _check_reward_sd(field: str, value: Any, rewards: str) -> float | None:
    if rewards == "binary":
        if value is not None:
            raise InputError(field, value, "None: rewards of 0 or 1 have no spread of their own")
        return None
    return check_sd(field, 1.0 if value is None else value)


def _check_reward_range(field: str, value: Any, rewards: str) -> list[float] | None:
    if value is None:
        return None
    allowed = "None, or two numbers: the least and the largest reward"
    if rewards == "binary":
        raise InputError(field, value, "None: rewards are 0 or 1")
    bounds = validation.numbers(field, value, allowed)
    if bounds.shape != (2,) or not bounds[0] < bounds[1]:
        raise InputError(field, value, allowed)
    return [float(x) for x in bounds]


def _check_prior(field: str, value: Any) -> Any:
    """The value as numbers; their shape is checked by `PreparedProblem`, which knows the size of theta."""
    return validation.numbers(field, value, "a number, a list or a matrix of numbers").tolist()


def _check_channel(
    field: str, value: Any, context: Sequence[str] | Mapping[str, Any]
) -> dict[str, Any] | None:
    if value is None:
        return None
    if isinstance(context, Mapping):
        allowed = "None: the context says how far readings are off; or a list of names beside a channel"
        raise InputError(field, display(value), allowed)
    return channels.channel(value, context).to_json(sample=True)


def _check_agent(field: str, value: Any, channel: Mapping[str, Any] | None) -> str:
    if value is None:
        return "hedged" if channel is None else "unfog"
    return value.name if isinstance(value, Agent) and is_row(value) else path_of(field, value)


def _check_seed(field: str, value: Any) -> int:
    return secrets.randbits(32) if value is None else validation.count(field, value, 0, LARGEST_SEED)


def _check_epsilon(field: str, value: Any) -> float:
    if validation.not_negative(field, value) > 1:
        raise InputError(field, value, "a number from 0 to 1")
    return float(value)


def _check_default_reward(
    field: str, value: Any, reward_window: float | None, rewards: str, reward_range: Sequence[float] | None
) -> float | None:
    if value is None:
        return None
    if reward_window is None:
        raise InputError(field, value, "None, unless there is a reward_window, at whose end it is learnt")
    return paid(field, value, rewards, reward_range)


def _check_update(field: str, value: Any, reward_window: float | None, default_reward: float | None) -> str:
    if value is None:
        return "immediate" if default_reward is None else "at_close"
    if validation.one_of(field, value, UPDATES) == "at_close" and reward_window is None:
        raise InputError(field, repr(value), "'immediate' without a reward_window")
    if value == "immediate" and default_reward is not None:
        raise InputError(field, repr(value), "'at_close' where a default reward is set")
    return str(value)


def _check_reward_aggregation(field: str, value: Any, update: str, rewards: str) -> str:
    if (
        validation.one_of(field, value, tuple(AGGREGATIONS)) not in ("last", "first")
        and update == "immediate"
    ):
        raise InputError(field, repr(value), "'last' or 'first', unless update is 'at_close'")
    if value in ("sum", "mean") and rewards == "binary":
        raise InputError(field, repr(value), "one of which rewards of 0 or 1 come: last, first, max, min")
    return str(value)


class Field(NamedTuple):
    """How a term is checked and written, besides its name and its type in Python."""

    json: str  # its type in JSON, one of those in serve/schemas.py
    check: Callable[..., Any]  # (name, value, *needs) -> the value in the log
    default: Any = None
    needs: tuple[str, ...] = ()  # earlier terms that its check depends on
    follows: bool = False  # whether None means a value that is drawn, or that follows from other terms

    def written(self, name: str, value: Any, terms: Mapping[str, Any]) -> Any:
        """The term as the log has it; `terms` has those before it."""
        return self.check(name, value, *(terms[other] for other in self.needs))


class ProblemOptions(TypedDict, total=False):
    """The terms as a caller passes them. Stores, services, clients and the command line use this table."""

    context: Annotated[Sequence[str] | Mapping[str, Any], Field("context", _check_context)]
    arms: Annotated[Sequence[str] | Mapping[str, Any] | None, Field("arms", validation.check_arms)]
    arm_size: Annotated[int | None, Field("integer or null", _check_arm_size)]
    features: Annotated[str | MapBuilder, Field("reference", _check_features, "per_arm")]
    rewards: Annotated[str, Field("name", _check_rewards, "numeric")]
    reward_sd: Annotated[
        float | None, Field("number or null", _check_reward_sd, needs=("rewards",), follows=True)
    ]
    reward_range: Annotated[
        tuple[float, float] | None, Field("range or null", _check_reward_range, needs=("rewards",))
    ]
    prior_mean: Annotated[Any, Field("numbers", _check_prior, 0.0)]
    prior_cov: Annotated[Any, Field("numbers", _check_prior, 1.0)]
    channel: Annotated[
        Channel | Knowledge | Mapping[str, Any] | None, Field("channel", _check_channel, needs=("context",))
    ]
    standardise: Annotated[bool, Field("boolean", validation.flag, True)]
    agent: Annotated[
        str | Agent | None, Field("reference or null", _check_agent, needs=("channel",), follows=True)
    ]
    seed: Annotated[int | None, Field("integer or null", _check_seed, follows=True)]
    epsilon: Annotated[float, Field("share", _check_epsilon, 0.02)]
    reward_window: Annotated[Span, Field("span", seconds)]
    default_reward: Annotated[
        float | None,
        Field("number or null", _check_default_reward, needs=("reward_window", "rewards", "reward_range")),
    ]
    update: Annotated[
        str | None,
        Field("name or null", _check_update, needs=("reward_window", "default_reward"), follows=True),
    ]
    reward_aggregation: Annotated[
        str, Field("name", _check_reward_aggregation, "last", needs=("update", "rewards"))
    ]
    context_window: Annotated[Span, Field("span", seconds, "7d")]


FIELDS: dict[str, Field] = {
    name: kind.__metadata__[0] for name, kind in get_type_hints(ProblemOptions, include_extras=True).items()
}


def show_options(function: Function) -> Function:
    """Make `help` and `inspect.signature` show each term that a function takes, with its default.

    Their types are left out: type checkers know them, and people would have to look for the names.
    """
    signature, keyword = inspect.signature(function), inspect.Parameter.KEYWORD_ONLY
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    terms = [inspect.Parameter(name, keyword, default=field.default) for name, field in FIELDS.items()]
    first, last = ([p for p in own if (p.kind is keyword) is after] for after in (False, True))
    last = [p.replace(annotation=p.empty) for p in last]
    vars(function)["__signature__"] = signature.replace(parameters=[*first, *terms, *last])
    return function


class ProblemConfig(NamedTuple):
    """The terms, as they are used."""

    context: tuple[str, ...]  # names of the columns, one for each number of a context
    arms: dict[str, Any]  # name -> vector, or None where arms have none
    arm_size: int | None  # how many numbers an arm has, where arms come with each decision
    features: str
    rewards: str
    reward_sd: float | None
    reward_range: tuple[float, float] | None
    prior_mean: Any
    prior_cov: Any
    channel: Channel | None
    standardise: bool
    agent: str
    seed: int
    epsilon: float
    reward_window: float | None  # seconds
    default_reward: float | None
    update: str
    reward_aggregation: str
    context_window: float | None  # seconds
    module_hashes: dict[str, str]
    uid: str  # of this problem, for ids of its decisions
    spec: ContextSpec | None = None  # what is said of each coordinate; None: names alone

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> "ProblemConfig":
        """Read terms from the body of a problem's first event."""
        fields = {name: body[name] for name in LOGGED}
        if isinstance(body["context"], Mapping) or (body["channel"] is None and body["agent"] == "hedged"):
            fields["spec"] = read_context("context", body["context"])  # a list of names: all are exact
            fields["context"] = fields["spec"].columns
        fields["context"] = tuple(fields["context"])
        if fields["reward_range"] is not None:
            fields["reward_range"] = tuple(fields["reward_range"])
        if fields["channel"] is not None:
            fields["channel"] = channels.channel(fields["channel"], fields["context"])
        return cls(**fields)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """The names of coordinates, as callers write a context."""
        return self.context if self.spec is None else self.spec.names

    @property
    def readings(self) -> tuple[str, ...]:
        """The columns that a sensor may read with an error: all but those of categories and cycles."""
        return self.context if self.spec is None else self.spec.readings

    @property
    def is_binary(self) -> bool:
        """Whether rewards are 0 or 1."""
        return self.rewards == "binary"

    @property
    def reward_kind(self) -> str:
        """What agents call these rewards."""
        return REWARDS[self.rewards]

    def check_reward(self, field: str, value: object) -> float:
        """The reward as a float; InputError if it is none that may be reported."""
        return paid(field, value, self.rewards, self.reward_range)

    def aggregate(self, rewards: Sequence[float]) -> float:
        """Combine several rewards of one decision into one."""
        return float(AGGREGATIONS[self.reward_aggregation](rewards))


LOGGED = tuple(name for name in ProblemConfig._fields if name != "spec")  # its fields in the first event


def written(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The terms as JSON, from a caller's arguments: every term is checked, and defaults are filled in."""
    check_fields_known(arguments)
    body: dict[str, Any] = {}
    for name, field in FIELDS.items():
        body[name] = field.written(name, arguments.get(name, field.default), body)
    return {**body, "module_hashes": _hash_modules(body), "uid": secrets.token_hex(8)}


def check_fields_known(arguments: Mapping[str, Any]) -> None:
    """Raise InputError if an argument is no term."""
    for name in arguments:
        if name not in FIELDS:
            raise InputError(str(name), "no such field", ", ".join(FIELDS), LIKELY_OPTIONS.get(name))


def check_unchanged(body: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    """Raise InputError if an argument differs from what the problem was created with, or code has changed."""
    check_fields_known(arguments)
    for name, value in arguments.items():
        field = FIELDS[name]
        if value is None and field.follows:
            continue
        now, was = field.written(name, value, body), body[name]
        if field.json == "channel" and isinstance(now, dict) and isinstance(was, dict):
            now = {part: now.get(part) for part in was}
        if now != was or (field.json == "arms" and list(now) != list(was)):
            raise InputError(name, value, f"what the problem was created with: {_shorten_repr(was)}")
    module_hashes = _hash_modules(body)
    for name, was in body["module_hashes"].items():
        if module_hashes.get(name) != was:
            raise InputError(name, f"{body[name]} has changed", "the code with which the problem was created")


def _shorten_repr(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _hash_modules(body: Mapping[str, Any]) -> dict[str, str]:
    """Fingerprints of the features and the agent, where they are the caller's own code."""
    names = [
        name for name, field in FIELDS.items() if field.json.startswith("reference") and ":" in body[name]
    ]
    module_hashes = {name: module_hash(name, body[name]) for name in names}
    return {name: value for name, value in module_hashes.items() if value is not None}


def is_row(agent: Agent) -> bool:
    """Whether it is the row of the catalogue that has its name."""
    return EVERY.get(agent.name) == agent


def path_of(field: str, value: object) -> str:
    """The name if it is one, or the module:name under which this object can be imported."""
    if isinstance(value, str):
        return value
    module, name = _find_origin(value)
    loaded = sys.modules.get(module)
    if module == "__main__" or loaded is None or vars(loaded).get(name) is not value:
        allowed = "a name, or something that can be imported: module:name"
        raise InputError(field, display(value), allowed)
    return f"{module}:{name}"


def _find_origin(value: Any) -> tuple[str, str]:
    """The module and the name that an object says it was defined with; empty if it does not say."""
    try:
        return str(value.__module__), str(value.__qualname__)
    except AttributeError:
        return "", ""


def module_hash(field: str, path: str) -> str | None:
    """The SHA-256 of the source of a module:name; None for names of this package."""
    home = path.partition(":")[0]
    if not REFERENCE.fullmatch(path) or home in EVERY:
        return None
    import_object(field, path, "a name, or module:name of something that can be imported")
    try:
        text = inspect.getsource(sys.modules[home])
    except (OSError, TypeError):
        return "no source"
    return sha256(text.encode()).hexdigest()


def check_code(field: str, path: str, was: object) -> None:
    """Raise InputError if the caller's code has changed; names of this package have no hash."""
    if was is not None and module_hash(field, path) != was:
        raise InputError(field, f"{path} has changed", "the code with which it was made")


MOST = 1 << 30  # bytes that one agent of a problem may take
NUMBER = 8  # bytes
COPIES = 16  # of the belief about theta, at most at a time, where it is in blocks or may be undone
DENSE_COPIES = 4  # likewise, of learners with one dense matrix
DRAW_COPIES = 4  # of each draw of theta, during a decision


def bytes_needed(agent: Agent, known: Knowledge) -> int:
    """About how many bytes an agent takes; of the arrays of priors only the shapes are used."""
    m, d = known.prior_mean.shape[-1], known.context_mean.shape[-1]
    theta = DENSE_COPIES * m * m if agent.learner.dense else COPIES * known.prior_cov.size
    draws = propensity_draws(agent.chooser) * agent.chooser.normals(known)
    return NUMBER * (theta + COPIES * d * d + DRAW_COPIES * draws)


def check_size(field: str, agent: Agent, known: Knowledge) -> None:
    """Raise InputError if an agent would take more memory than is allowed."""
    bytes_ = bytes_needed(agent, known)
    if bytes_ > MOST:
        m, d = known.prior_mean.shape[-1], known.context_mean.shape[-1]
        what = f"{m} features of contexts of {d} take {agent.name!r} about {bytes_ / 2**30:.1f} GiB of memory"
        raise InputError(field, what, f"fewer arms or coordinates: {MOST / 2**30:g} GiB at most")


PAIRS = (
    "{agent} learns from pairs: a reward waits for its true context, which must be complete."
    " Agents such as late take contexts in part, and rewards without."
)
SMALL_NOISE = 0.01  # of the variance of contexts: less may be a standard deviation by mistake
SMALL = (
    "channel.noise_cov of {name!r}: {variance:g}, {share:.2g} % of context_cov, {spread:g}. Both are"
    " variances: if {variance:g} is a standard deviation, noise_cov is its square, {square:g}."
)

ORDINARY = (
    "There is no channel, so readings are taken for the truth: an ordinary contextual bandit."
    " Pairs of noisy and true contexts from before (unfog.calibrate) are what it would need to do better."
)

EXACT = (
    "All coordinates are taken to be exact: an ordinary contextual bandit. Where readings may be off, say by"
    ' how much: context={{"{name}": 1.5, ...}}, a standard deviation for each coordinate.'
)


class PreparedProblem:
    """A problem's configuration, from its terms: units, features, knowledge and agents."""

    def __init__(self, terms: ProblemConfig, *, new: bool = True) -> None:
        """Raise InputError if terms do not go together or, for a new problem, need too much memory."""
        self.terms, d = terms, len(terms.context)
        self.channel, self.units = self._read_channel()
        self._build = builder(terms.features)
        check_map(self.first, len(terms.arms) or 1, d)
        self.agent = self.agent_named("agent", terms.agent, self.first(), new="arms" if new else "")

    def _read_channel(self) -> tuple[Channel, Units]:
        """The channel, and the units that agents see; the caller's, unless all moments are told."""
        terms, channel = self.terms, self.terms.channel
        if terms.spec is not None:
            channel = terms.spec.to_partial_channel()
            if not channel.is_complete or not terms.standardise:
                return channel, channels.keep_units(channel)
            channel = terms.spec.to_channel()
            return channel, terms.spec.to_units(channel)
        if channel is None:
            channel = unknown_channel(len(terms.context))
            return channel, channels.keep_units(channel)
        return channel, (channels.standard if terms.standardise else channels.keep_units)(channel)

    @property
    def _is_exact(self) -> bool:
        """Whether all coordinates are said to be exact."""
        spec = self.terms.spec
        return spec is not None and len(spec.exact) == len(spec.names)

    @property
    def knows_noise(self) -> bool:
        """Whether it is known how far readings are off, so that lost ones can be made up for."""
        return self.terms.channel is not None or self.terms.spec is not None

    @cached_property
    def note(self) -> str:
        """What a caller should know about these terms; empty if nothing."""
        if not self.knows_noise:
            return ORDINARY
        if self._is_exact:
            return EXACT.format(name=self.terms.coordinates[0])
        pairs = PAIRS.format(agent=self.agent.name) if self.agent.awaits_context else ""
        return " ".join(note for note in (pairs, self._note_small_noise()) if note)

    def _note_small_noise(self) -> str:
        """A note on the first coordinate whose noise may be a standard deviation instead of a variance."""
        if self.terms.channel is None:
            return ""
        noise, spread = np.diag(self.channel.noise_cov), np.diag(self.channel.context_cov)
        small = (noise > 1) & (noise < SMALL_NOISE * spread)  # below 1 the square would be smaller still
        if not small.any():
            return ""
        j = int(small.argmax())
        v, w = float(noise[j]), float(spread[j])
        return SMALL.format(name=self.terms.context[j], variance=v, share=100 * v / w, spread=w, square=v**2)

    def first(self) -> FeatureMap:
        """The feature map of the first arms; of a single arm if arms come with each decision."""
        terms = self.terms
        return self.features(terms.arms) if terms.arms else self.brought({"": [0.0] * (terms.arm_size or 0)})

    @property
    def per_arm(self) -> bool:
        """Whether each arm has features of its own, and no vector."""
        return self.terms.features == "per_arm"

    def features(self, arms: Mapping[str, Any]) -> FeatureMap:
        """The feature map of these arms, in their order."""
        if self.per_arm:
            for name, vector in arms.items():
                if vector is not None:
                    allowed = "a name alone: with per_arm an arm has no numbers of its own"
                    raise InputError(f"arms.{name}", vector, allowed)
            return self._build(np.zeros((len(arms), len(self.terms.context))))
        return self._build(self._stack_vectors("arms", arms))

    def brought(self, arms: Mapping[str, Any]) -> FeatureMap:
        """The feature map of arms that come with a decision."""
        if self.terms.arm_size is None:
            allowed = "names, or a mapping from names to vectors; or arm_size for arms that come later"
            raise InputError("arms", "none", allowed)
        if self.per_arm:
            allowed = "none with per_arm, where each arm that there is has features of its own"
            raise InputError("arm_size", self.terms.arm_size, allowed)
        return self._build(self._stack_vectors("arms", arms))

    def _stack_vectors(self, field: str, arms: Mapping[str, Any]) -> Array:
        """The vectors of these arms as one array, (K, p)."""
        terms, shape = self.terms, self.arm_shape
        for name, vector in arms.items():
            if vector is None:
                allowed = f"a vector for each arm, with the features {terms.features!r}"
                raise InputError(f"{field}.{name}", "a name alone", allowed)
            vector_shape = np.shape(vector)
            if shape is not None and vector_shape != shape:
                raise InputError(
                    f"{field}.{name}", vector, f"numbers of shape {shape}, as the other arms have"
                )
        return np.asarray(list(arms.values()), dtype=np.float64)

    @cached_property
    def arm_shape(self) -> tuple[int, ...] | None:
        """The shape of an arm's vector; None if arms have none."""
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

    def whole(self, revealed: Mapping[str, float]) -> Array:
        """A true context in the agents' units, (1, d), with NaN where it is not known."""
        raw = np.array([[revealed.get(name, np.nan) for name in self.terms.context]], dtype=np.float64)
        return self.units.inside(raw)

    def limit_noise(self, cov: Array) -> Array:
        """The noise covariances (..., d, d) of readings in the agents' units, none too small or too large."""
        context_cov = self.units.noise(self.channel.context_cov)
        return limit_cov(self.units.noise(cov), context_cov)

    def knowledge(self, features: FeatureMap) -> Knowledge:
        """What agents know, with a prior for these features."""
        terms = self.terms
        mean, cov = prior(features, terms.prior_mean, terms.prior_cov)
        variance = None if terms.reward_sd is None else np.asarray(terms.reward_sd**2)
        known = self.channel.to_knowledge(self.units, prior_mean=mean, prior_cov=cov, reward_var=variance)
        groups = effect_groups(features)
        if groups is not None and self.terms.spec is not None:
            groups = self.terms.spec.effect_groups
        return known._replace(groups=groups)

    def check_size(self, field: str, agent: Agent, features: FeatureMap) -> None:
        """Raise InputError if an agent would take too much memory with these features; none is allocated."""
        m = features.size
        shape: tuple[int, ...] = m, m
        if isinstance(features, PerArm) and in_blocks(features, self.terms.prior_cov):
            shape = features.arms, features.block, features.block
        mean, cov = (np.broadcast_to(np.zeros(()), size) for size in (m, shape))  # views of one number each
        knowledge = self.channel.to_knowledge(self.units, prior_mean=mean, prior_cov=cov, reward_var=None)
        check_size(field, agent, knowledge)

    def agent_named(self, field: str, name: str, features: FeatureMap, *, new: str = "") -> Agent:
        """The agent of this name; InputError if it cannot play this problem.

        For a new agent, `new` is the field that an error names if it would take too much memory.
        """
        (agent,) = select_rows([name], field, Catalogue(self.terms.reward_kind))
        if agent.can.see_bias is not None:
            raise InputError(field, f"{name!r} is told the bias", "agents that need not be told the truth")
        if not self.knows_noise or (self._is_exact and agent.denoiser.needs_moments):
            agent = without_channel(field, agent)
        if new:
            self.check_size(new, agent, features)
        known = self.knowledge(features)
        try:
            check_fit(
                agent,
                known,
                features,
                rewards=self.terms.reward_kind,
                partial=False,
                has_bias=False,
                logged=True,
            )
        except InputError as error:
            raise error.renamed(field) from None
        return agent


def may_use_sample(name: object) -> bool:
    """Whether an agent, or that of this name, uses a sample of true contexts; True if not known here."""
    if name is None:
        return False  # the default agents do not
    try:
        rows = Catalogue("gaussian")
        agent = name if isinstance(name, Agent) else select_rows([str(name)], "agent", rows)[0]
    except InputError:
        return True
    return "sample" in agent.denoiser.needs_knowledge


def channel_needed(channel: dict[str, Any] | None, agent: Agent) -> dict[str, Any] | None:
    """A channel as it is written, without samples of contexts that this agent does not use."""
    if channel is None:
        return None
    unused = {"sample", "contexts"} - {*agent.denoiser.needs_knowledge}
    return {name: value for name, value in channel.items() if name not in unused}
