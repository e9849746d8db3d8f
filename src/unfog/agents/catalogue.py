"""The catalogue: every named algorithm, names that spell an agent out of its parts, and when to use which.

A row of `AGENTS` names its three parts, and the learner it has for rewards of 0 or 1 (`binary_learner`): in
the paper's rows the paper's own, Langevin Monte Carlo. `WHEN` says in plain words when to use it. A context
there is what the decision depends on; a reading is the context as the sensor shows it; the bias is how far
the sensor is off on average.

Other agents are spelled out by name: a row with another learner, another chooser, or both, or with settings
of your own.

    alg1                                  the row; for rewards of 0 or 1 with its learner for these
    alg1-pg                               the row with another learner
    alg1-lmc:temperature=1:steps=20       with settings of your own
    alg1-exact-hetero-ucb                 with another learner and another chooser
    drift:step=0.01:tail=8                the row with other settings of its own three parts

The name says everything, so a spec or a run folder needs to hold nothing else. An `unfog.Agent` of your own
is named module:name.

Where nothing is known of the channel, `without_channel` makes of an agent an ordinary contextual bandit, one
that takes readings for the truth.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache, partial
from typing import Any

import numpy as np

from unfog.agents import choose, learn
from unfog.agents.agent import PLACES, Agent
from unfog.agents.baselines import BASELINES
from unfog.agents.choose import RandUcb, Thompson
from unfog.agents.denoise import (
    Adaptive,
    Drift,
    Empirical,
    Exact,
    Fleet,
    Identity,
    Incomplete,
    KnownBias,
    KnownBiasAtoms,
    Mixture,
    PlugIn,
    PriorOnly,
    Robust,
    Temporal,
    TemporalBank,
    UnknownNoise,
)
from unfog.agents.learn import (
    LMC,
    Adf,
    Conjugate,
    Coupled,
    EmpiricalBayes,
    LinearProbability,
    Revisable,
    Scaled,
    Sites,
)
from unfog.channel.channel import Channel
from unfog.channel.knowledge import BEYOND
from unfog.validation import (
    LONGEST_LOOKED_UP,
    REFERENCE,
    InputError,
    display,
    import_object,
    nearest,
    one_of,
    positive,
)

PAPER = "Thompson Sampling for Stochastic Bandits with Noisy Contexts"
KK = "Kirschner and Krause, Stochastic Bandits with Context Distributions"
PF = "Park and Faradonbeh, Analysis of Thompson Sampling for Partially Observable Contextual Bandits"
OURS, EXACT = "unfog, docs/guide/agents.md", "unfog, docs/science/denoising.md"
CONTEXTS = "unfog, docs/science/contexts.md"

_paper = partial(Agent, learner=Conjugate(), chooser=Thompson(), binary_learner=LMC())
_ours = partial(
    Agent, learner=Scaled(), chooser=RandUcb(), binary_learner=Adf(marginal=True), reference=OURS, clip_sd=6.0
)
# An agent that doubts what it is told of the channel doubts the told spread of theta, too.
_cautious = partial(_ours, learner=Scaled(ratio=2.0, doubt=0.2, larger=0.8, mixed=True))

# fmt: off
_ROWS = [
    _paper("alg1", PlugIn(), label="Algorithm 1", reference=f"{PAPER}, Algorithm 1",
           summary="learns the bias from noisy contexts, plug-in denoising"),
    _paper("alg2", PlugIn(pairs=True), label="Algorithm 2", reference=f"{PAPER}, Algorithm 2",
           summary="shown true contexts late: learns bias and reward from them"),
    _paper("naive", Identity(), label="TS naive", reference=f"{PAPER}, TS_naive",
           summary="takes the noisy context for the true one"),
    _paper("oracle", KnownBias(), label="TS oracle", reference=f"{PF}; {PAPER}, TS_oracle",
           summary="is told the bias"),
    _paper("kk", PriorOnly(), label="TS kk", reference=f"{KK}; a baseline of ours",
           summary="ignores the noisy context, knows its distribution"),
    _paper("alg1-exact", Exact(), label="Algorithm 1, exact", reference=EXACT,
           summary="alg1 with the exact posterior of the context"),
    _paper("alg2-exact", Exact(pairs=True), label="Algorithm 2, exact", reference=EXACT,
           summary="alg2 with the exact posterior of the context"),
    _ours("unfog", Exact(),
          summary="our default: denoises, trusts rewards less where the context is unsure, "
          "explores by a bound whose width is drawn"),
    _ours("unfog-delayed", Exact(pairs=True), binary_learner=Adf(),
          summary="our default where true contexts come after rewards"),
    _ours("unfog-oracle", KnownBias(),
          summary="our default, told the bias: what not knowing it costs"),
    _cautious("adaptive", Adaptive(),
              summary="finds out how large the noise is, how fast the bias walks, "
              "and whether tails are heavy"),
    _cautious("adaptive-delayed", Adaptive(pairs=True), binary_learner=Adf(),
              summary="adaptive where true contexts come after rewards"),
    _ours("coupled", Exact(), learner=Coupled(), binary_learner=None,
          summary="unfog with one Gaussian over theta and the bias: rewards, too, tell of the bias"),
    _ours("gaps", Incomplete(),
          summary="knows which coordinates of the noisy context were lost"),
    # Growth 0, plain deviations: what growth needs to compute would make slow rounds slower.
    _ours("late", Incomplete(pairs=True), learner=Revisable(), chooser=RandUcb(growth=0.0),
          binary_learner=Sites(),
          summary="takes true contexts late, in any order, whole or in part; knows of gaps"),
    _ours("unknown-noise", UnknownNoise(), learner=Revisable(), chooser=RandUcb(growth=0.0),
          binary_learner=Sites(),
          summary="learns the covariance of the noise, too, from what is revealed"),
    _ours("temporal", Temporal(), learner=Revisable(), chooser=RandUcb(growth=0.0), binary_learner=Sites(),
          summary="follows contexts and a sensor that drift in time; takes true contexts whenever they come"),
    _ours("adaptive-temporal", TemporalBank(), learner=Revisable(), chooser=RandUcb(growth=0.0),
          binary_learner=Sites(),
          summary="temporal that finds out how large errors are, and how fast the bias moves"),
    _ours("hedged", Fleet(), learner=EmpiricalBayes(), binary_learner=LinearProbability(), clip_sd=None,
          summary="told only how noisy one reading is: learns the rest from all units and all rewards, "
          "and weighs whose a unit's offset is"),
    _ours("drift", Drift(), summary="follows a bias that walks"),
    _ours("robust", Robust(), summary="expects outliers: noise with heavy tails"),
    _ours("empirical", Empirical(), reference=CONTEXTS,
          summary="knows contexts by a sample of past ones instead of a Gaussian law"),
    _ours("mixture", Mixture(), reference=CONTEXTS,
          summary="knows contexts by a mixture of Gaussians, which noisy ones suffice to fit"),
    _ours("bayes-oracle", KnownBiasAtoms(),
          summary="unfog-oracle, told the contexts there are; where contexts are drawn from a sample"),
]
# fmt: on

AGENTS = {row.name: row for row in _ROWS}
EVERY = AGENTS | {
    name: baseline.agent for name, baseline in BASELINES.items()
}  # all rows that a name may begin with


WHEN = {
    "alg1": "To repeat the paper's Algorithm 1, or to compare with it. For your own decisions take unfog.",
    "alg2": "To repeat the paper's Algorithm 2, which is shown true contexts. Else take unfog-delayed.",
    "naive": "To see what it costs to take readings for the truth.",
    "oracle": "In simulations alone, to compare with: it is told the bias, which nobody knows in practice.",
    "kk": "To compare with: what is lost by not looking at readings at all.",
    "alg1-exact": "To see what exact denoising alone changes in alg1.",
    "alg2-exact": "To see what exact denoising alone changes in alg2.",
    "unfog": "Unless you have more to go by, or trouble of a known kind: this is the one to begin with.",
    "unfog-delayed": "When the true context of a round becomes known after its reward.",
    "unfog-oracle": "In simulations alone, beside unfog: what not knowing the bias costs.",
    "adaptive": "When you do not know your sensor well: how noisy it is, whether its bias moves, outliers.",
    "adaptive-delayed": "Like adaptive, when true contexts become known after rewards.",
    "coupled": "When rewards are plain numbers and you want them, too, to tell of the bias.",
    "gaps": "When some numbers of a reading get lost, and it is known which.",
    "late": "When true contexts come late, in any order, whole or in part.",
    "unknown-noise": "When the size of the noise is not known, and some true contexts become known.",
    "temporal": "When contexts move slowly and the sensor drifts; it wants to be calibrated with times.",
    "adaptive-temporal": "Like temporal, when the size of errors and the speed of the bias are not known.",
    "hedged": "When you know how noisy one reading is, and nothing else.",
    "drift": "When the sensor's bias changes slowly over time.",
    "robust": "When some readings are far off: outliers.",
    "empirical": "When contexts are far from a bell curve and you have a sample of true ones.",
    "mixture": "When contexts are far from a bell curve and you have noisy ones to learn that from.",
    "bayes-oracle": "In simulations alone, where contexts are a sample: it is told that and the bias.",
}


def playable(facts: Collection[str] = ()) -> list[str]:
    """The rows for worlds that tell these facts about contexts (of `BEYOND`) besides their moments."""
    return [name for name, row in AGENTS.items() if {*row.denoiser.needs_knowledge} <= {*facts}]


class Catalogue(Mapping[str, Agent]):
    """The agents for one kind of rewards by name, with rows of your own if there are any.

    >>> from unfog.agents.catalogue import Catalogue
    >>> Catalogue()["alg1-exact-hetero-ucb:quantile=0.9"].chooser
    Ucb(quantile=0.9, growth=0.0)
    >>> Catalogue("bernoulli")["alg1"].learner.rewards
    'bernoulli'
    """

    def __init__(
        self, kind: str = "gaussian", own: Iterable[Agent] = (), knowledge: Collection[str] = BEYOND
    ) -> None:
        """For a kind of rewards, and for worlds that tell these facts about contexts (`BEYOND`)."""
        self.kind, self.own, self._listed = kind, {row.name: row for row in own}, playable(knowledge)

    def __iter__(self) -> Iterator[str]:
        """The names to list; a name that spells out parts, or says module:name, is known too."""
        return iter(dict.fromkeys([*self._listed, *self.own]))

    def __len__(self) -> int:
        return len({*self._listed, *self.own})

    def __getitem__(self, name: str) -> Agent:
        if name not in self.own:
            return _find_row(self.kind, name)
        return _fit_rewards(self.own[name], self.kind)

    def allowed(self) -> str:
        """What may be named, in words."""
        learner = next(name for name, part in LEARNERS.items() if part.rewards == self.kind)
        own = "".join(f"{name}, " for name in self.own)
        return (
            f"{own}a name from `unfog list agents` or `unfog list baselines`"
            f" that learns from {self.kind} rewards, also with other parts, as alg1-{learner}-ucb;"
            " or module:name for one of your own"
        )


@cache
def _find_row(kind: str, name: str) -> Agent:
    """The agent of this name: imported, or spelled out of rows and parts."""
    if REFERENCE.fullmatch(name) and name.partition(":")[0] not in EVERY:
        return _fit_rewards(_import_agent(name), kind)
    return parse_name(EVERY, name, kind)


def _fit_rewards(agent: Agent, kind: str) -> Agent:
    """A custom agent with its learner for this kind of rewards, if it has one."""
    has_other = agent.binary_learner is not None and agent.binary_learner.rewards == kind
    return agent.for_rewards(kind) if has_other else agent


def _import_agent(name: str) -> Agent:
    """Import the custom agent module:name, under that name."""
    allowed = "module:name of an unfog.Agent"
    agent = import_object(name, name, allowed)
    if not isinstance(agent, Agent):
        raise InputError(name, f"it is {agent!r}", allowed)
    return replace(agent, name=name)


def select_rows(names: Iterable[str], field: str = "agents", rows: Catalogue | None = None) -> list[Agent]:
    """The rows with these names, in this order; unknown and repeated names are refused."""
    rows, chosen, agents = rows or Catalogue(), list(names), list[Agent]()
    if not chosen:
        raise InputError(field, "none named", f"one or more of {rows.allowed()}")
    for position, name in enumerate(chosen):
        if name in chosen[:position]:
            raise InputError(field, f"{name!r} is named twice", "each agent once")
        try:
            agent = rows[name]
        except KeyError:
            suggestion = suggest_name([*EVERY, *rows.own], name, rows.kind)
            raise InputError(field, _explain_unknown(name, rows.kind), rows.allowed(), suggestion) from None
        except InputError as error:
            raise InputError.prefixed(field, error) from None
        for other in agents:
            if agent.same_as(other) and not {name, other.name} & set(rows.own):
                raise InputError(field, f"{name!r} is {other.name!r} by another name", "each agent once")
        agents.append(agent)
    return agents


def _explain_unknown(name: str, kind: str) -> str:
    """Why there is no such agent: a row may have no learner for rewards of this kind."""
    row = EVERY.get(row_of(name))
    if row is None or _can_learn(row, kind):
        return f"no agent is called {name!r}"
    return f"{name!r} learns from {row.learner.rewards} rewards, and these are {kind}"


def _can_learn(row: Agent, kind: str) -> bool:
    """Whether a row has a learner for this kind of rewards."""
    return kind in (row.learner.rewards, row.binary_learner and row.binary_learner.rewards)


def with_own(agents: Sequence[str | Agent]) -> tuple[list[str], list[Agent]]:
    """The names of these agents, and those among them that are given as rows."""
    try:
        items = list(agents)
    except TypeError:  # not a list at all
        items = []
    is_list = isinstance(agents, Iterable) and not isinstance(agents, str | bytes | Mapping)
    if not is_list or not all(isinstance(agent, str | Agent) for agent in items):
        raise InputError("agents", display(agents), "a list of names or of rows")
    names = [agent if isinstance(agent, str) else agent.name for agent in items]
    return names, [agent for agent in items if isinstance(agent, Agent)]


LEARNERS: dict[str, Any] = {part.name: part for part in (vars(learn)[name] for name in learn.__all__)}
CHOOSERS: dict[str, Any] = {part.name: part for part in (vars(choose)[name] for name in choose.__all__)}
PARTS = {**LEARNERS, **CHOOSERS}
_PART_START = re.compile(rf"-(?=(?:{'|'.join(PARTS)})(?:[-:]|$))")


def parse_name(rows: Mapping[str, Agent], name: str, kind: str = "gaussian") -> Agent:
    """The agent that a name means; KeyError where no row or part has it."""
    base, *part_texts = _PART_START.split(name)
    row_name, *settings = base.split(":")
    row, parts = rows[row_name].for_rewards(kind), dict(_parse_parts(kind, row_name, part_texts))
    if settings:
        row = _tune_row(row_name, row, settings, [role for role in PLACES if role not in parts])
    notes = [part.note for part in parts.values()]
    if kind != rows[row_name].learner.rewards and "learner" not in parts:
        notes.insert(0, row.learner.note)
    if row.name == name and not notes:
        return row
    summary = "; ".join([row.summary, *notes])
    return replace(row, **{"name": name, "summary": summary, "label": "", **parts})


def _parse_parts(kind: str, row_name: str, part_texts: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Each part with its role in an agent; KeyError for a role twice, or for other rewards."""
    roles = set()
    for text in part_texts:
        part_name, *settings = text.split(":")
        part = PARTS[part_name]
        role = "learner" if part in LEARNERS.values() else "chooser"
        if role in roles or (role == "learner" and part.rewards != kind):
            raise KeyError(row_name)
        roles.add(role)
        yield role, _build_part(f"{row_name}-{part_name}", part, settings)


def _build_part(name: str, part: Any, settings: Sequence[str]) -> Any:
    try:
        return part(**_parse_settings(_defaults(part), settings))
    except InputError as error:
        raise InputError.prefixed(name, error) from None


def _tune_row(row_name: str, row: Agent, settings: Sequence[str], roles: Sequence[str]) -> Agent:
    """The row with other settings: each goes to the part, among those with these roles, that has it."""
    parts: dict[str, Any] = {role: vars(row)[role] for role in roles}
    defaults = {role: _defaults(part) for role, part in parts.items()}
    own = {} if row.clip_sd is None else {"clip_sd": row.clip_sd}
    try:
        known = {
            field: value
            for own_defaults in (*defaults.values(), own)
            for field, value in own_defaults.items()
        }
        values = _parse_settings(known, settings)
        changed: dict[str, Any] = {
            role: replace(
                parts[role], **{field: value for field, value in values.items() if field in own_defaults}
            )
            for role, own_defaults in defaults.items()
        }
        clip_sd = positive("clip_sd", values["clip_sd"]) if "clip_sd" in values else row.clip_sd
    except InputError as error:
        raise InputError.prefixed(row_name, error) from None
    return replace(row, **changed, clip_sd=clip_sd)


def row_of(name: str) -> str:
    """The name of the row that a name begins with."""
    return _PART_START.split(name)[0].partition(":")[0]


def suggest_name(rows: Iterable[str], name: str, kind: str) -> str:
    """Suggest the name that was meant, by its row or, if that is known, by the parts after it; or empty.

    alg1-exat is alg1-exact, orcale-ucb is oracle-ucb, alg1-hetro-ucb is alg1-hetero-ucb.
    """
    plain = name.partition(":")[0][: 2 * LONGEST_LOOKED_UP]
    rows, row = list(rows), row_of(plain)
    learners = [learner for learner, part in LEARNERS.items() if part.rewards == kind]
    parts = [*learners, *CHOOSERS, *(f"{learner}-{chooser}" for learner in learners for chooser in CHOOSERS)]
    heads = [row_name for row_name in rows if plain.startswith(f"{row_name}-")]
    known = [f"{row_name}-{part}" for row_name in heads for part in parts]
    others = [] if row in rows else [row_name + plain[len(row) :] for row_name in rows]
    return nearest(plain, [*rows, *others, *known])


def settings_of(part: str) -> list[str]:
    """A part's settings and their defaults, as they are written in a name."""
    return settings_in(PARTS[part])


def settings_in(part: Any) -> list[str]:
    """The settings of a part, or of its class, as they are written in a name."""
    return _write_settings(_defaults(part))


def _defaults(part: Any) -> dict[str, Any]:
    """The settings of a part, or of its class, that a name may change, with their defaults."""
    defaults: dict[str, Any] = {field.name: field.default for field in fields(part)}
    own = defaults if isinstance(part, type) else vars(part)
    # A row may say 2 for a setting whose default is 2.5.
    return {name: type(default)(own[name]) for name, default in defaults.items()}


def _write_settings(defaults: Mapping[str, Any]) -> list[str]:
    return [f"{field}={str(value).lower()}" for field, value in defaults.items()]


def _parse_settings(defaults: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """Parse settings written as field=value; the part itself checks the values."""
    values: dict[str, Any] = {}
    for setting in settings:
        field, equals, text = setting.partition("=")
        if field not in defaults:
            allowed = ", ".join(_write_settings(defaults)) or "none"
            raise InputError(field or "settings", "no such setting", allowed, nearest(field, defaults))
        if not equals:
            raise InputError(field, "has no value", f"{field}={str(defaults[field]).lower()}, for instance")
        if field in values:
            raise InputError(field, "given twice", "each setting once")
        values[field] = _parse_value(field, text, defaults[field])
    return values


def _parse_value(field: str, text: str, default: Any) -> Any:
    """Parse a setting of the type of its default: true or false, or a number."""
    if isinstance(default, bool):
        return one_of(field, text, ("true", "false")) == "true"
    plain = re.fullmatch(r"[0-9]+" if isinstance(default, int) else r"[-+.0-9eE]+", text)
    try:
        return type(default)(text if plain else "none")
    except ValueError:
        kind = "whole number" if isinstance(default, int) else "number"
        raise InputError(field, repr(text), f"a {kind}, such as {default}") from None


def without_channel(field: str, agent: Agent) -> Agent:
    """The same learner and chooser, on readings as they are."""
    try:
        return replace(agent, denoiser=Identity(), clip_sd=None)
    except InputError as error:
        raise InputError(field, f"{agent.name!r} without a channel", f"a channel; {error.allowed}") from None


def unknown_channel(dim: int) -> Channel:
    """A placeholder channel, for agents that take readings for the truth and never look at it."""
    eye = np.eye(dim)
    return Channel(np.zeros(dim), eye, eye, eye, np.zeros(dim))
