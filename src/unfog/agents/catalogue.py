"""Every named algorithm: one row each, with everything there is to say of it.

A row names its three parts, and the learner it has for rewards of 0 or 1 (`binary`): for the paper's rows the
paper's own, Langevin Monte Carlo. Others follow from a row's name and those of parts: see agents/names.py.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from unfog.agents.assemble import Agent
from unfog.agents.choose import RandUcb, Thompson
from unfog.agents.denoise import (
    Adaptive,
    Drift,
    Empirical,
    Exact,
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
from unfog.agents.learn import LMC, Adf, Conjugate, Coupled, Revisable, Scaled, Sites
from unfog.agents.names import LEARNERS, near, row_of, spelled_out
from unfog.agents.rivals.rows import RIVALS
from unfog.channel.knowledge import BEYOND
from unfog.validation import REFERENCE, InputError, imported, shown

PAPER = "Thompson Sampling for Stochastic Bandits with Noisy Contexts"
KK = "Kirschner and Krause, Stochastic Bandits with Context Distributions"
PF = "Park and Faradonbeh, Analysis of Thompson Sampling for Partially Observable Contextual Bandits"
OURS, EXACT = "unfog, docs/guide/agents.md", "unfog, docs/science/denoising.md"
CONTEXTS = "unfog, docs/science/contexts.md"

_paper = partial(Agent, learner=Conjugate(), chooser=Thompson(), binary=LMC())
_ours = partial(
    Agent, learner=Scaled(), chooser=RandUcb(), binary=Adf(marginal=True), reference=OURS, limit=6.0
)
# Who does not believe what it is told of the channel takes theta's spread for a guess, too.
_wary = partial(_ours, learner=Scaled(ratio=2.0, doubt=0.2, larger=0.8, mixed=True))

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
    _ours("unfog-delayed", Exact(pairs=True), binary=Adf(),
          summary="our default where true contexts come after rewards"),
    _ours("unfog-oracle", KnownBias(),
          summary="our default, told the bias: what not knowing it costs"),
    _wary("adaptive", Adaptive(),
          summary="finds out how large the noise is, how fast the bias walks, and whether tails are heavy"),
    _wary("adaptive-delayed", Adaptive(pairs=True), binary=Adf(),
          summary="adaptive where true contexts come after rewards"),
    _ours("coupled", Exact(), learner=Coupled(), binary=None,
          summary="unfog with one Gaussian over theta and the bias: rewards, too, tell of the bias"),
    _ours("gaps", Incomplete(),
          summary="knows which coordinates of the noisy context were lost"),
    # These choose by plain deviations: what a reward would teach is dear beside rounds that take so long.
    _ours("late", Incomplete(pairs=True), learner=Revisable(), chooser=RandUcb(growth=0.0), binary=Sites(),
          summary="takes true contexts late, in any order, whole or in part; knows of gaps"),
    _ours("unknown-noise", UnknownNoise(), learner=Revisable(), chooser=RandUcb(growth=0.0), binary=Sites(),
          summary="learns the covariance of the noise, too, from what is revealed"),
    _ours("temporal", Temporal(), learner=Revisable(), chooser=RandUcb(growth=0.0), binary=Sites(),
          summary="follows contexts and a sensor that drift in time; takes true contexts whenever they come"),
    _ours("adaptive-temporal", TemporalBank(), learner=Revisable(), chooser=RandUcb(growth=0.0),
          binary=Sites(),
          summary="temporal that finds out how large errors are, and how fast the bias moves"),
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
EVERY = AGENTS | {name: rival.agent for name, rival in RIVALS.items()}  # that a name can mean


def playable(told: Collection[str] = ()) -> list[str]:
    """The rows for worlds that tell these of the laws of contexts (`BEYOND`), besides their moments."""
    return [name for name, row in AGENTS.items() if {*row.denoiser.needs_knowledge} <= {*told}]


class Catalogue(Mapping[str, Agent]):
    """The agents for one kind of rewards by name, with rows of one's own if there are any.

    >>> from unfog.agents.catalogue import Catalogue
    >>> Catalogue()["alg1-exact-hetero-ucb:quantile=0.9"].chooser
    Ucb(quantile=0.9, growth=0.0)
    >>> Catalogue("bernoulli")["alg1"].learner.rewards
    'bernoulli'
    """

    def __init__(
        self, kind: str = "gaussian", own: Iterable[Agent] = (), told: Collection[str] = BEYOND
    ) -> None:
        """For a kind of rewards, and for worlds that tell these of the laws of contexts."""
        self.kind, self.own, self._listed = kind, {row.name: row for row in own}, playable(told)

    def __iter__(self) -> Iterator[str]:
        """The names to list; a name that spells out parts, or says module:name, is known too."""
        return iter(dict.fromkeys([*self._listed, *self.own]))

    def __len__(self) -> int:
        return len({*self._listed, *self.own})

    def __getitem__(self, name: str) -> Agent:
        if name not in self.own:
            return _row(self.kind, name)
        return _fitted(self.own[name], self.kind)

    def allowed(self) -> str:
        """What may be named, in words."""
        learner = next(name for name, part in LEARNERS.items() if part.rewards == self.kind)
        own = "".join(f"{name}, " for name in self.own)
        return (
            f"{own}a name from `unfog list agents` or `unfog list rivals`"
            f" that learns from {self.kind} rewards, also with other parts, as alg1-{learner}-ucb;"
            " or module:name for one of your own"
        )


def _learns(row: Agent, kind: str) -> bool:
    """Whether a row has a learner for this kind of rewards."""
    return kind in (row.learner.rewards, row.binary and row.binary.rewards)


@cache
def _row(kind: str, name: str) -> Agent:
    if REFERENCE.fullmatch(name) and name.partition(":")[0] not in EVERY:
        return _fitted(_imported(name), kind)
    return spelled_out(EVERY, name, kind)


def _fitted(own: Agent, kind: str) -> Agent:
    """One's own row with its learner for this kind of rewards, where it has another."""
    other = own.binary is not None and own.binary.rewards == kind
    return own.for_rewards(kind) if other else own


def _imported(name: str) -> Agent:
    """The agent of one's own that is called module:name, under that name."""
    allowed = "module:name of an unfog.Agent"
    found = imported(name, name, allowed)
    if not isinstance(found, Agent):
        raise InputError(name, f"it is {found!r}", allowed)
    return replace(found, name=name)


def _unknown(name: str, kind: str) -> str:
    """Why there is no such agent: a row may have no learner for rewards of this kind."""
    row = EVERY.get(row_of(name))
    if row is None or _learns(row, kind):
        return f"no agent is called {name!r}"
    return f"{name!r} learns from {row.learner.rewards} rewards, and these are {kind}"


def named(names: Iterable[str], field: str = "agents", rows: Catalogue | None = None) -> list[Agent]:
    """The rows with these names, in this order; unknown and repeated names are refused."""
    rows, chosen, found = rows or Catalogue(), list(names), list[Agent]()
    if not chosen:
        raise InputError(field, "none named", f"one or more of {rows.allowed()}")
    for position, name in enumerate(chosen):
        if name in chosen[:position]:
            raise InputError(field, f"{name!r} is named twice", "each agent once")
        try:
            agent = rows[name]
        except KeyError:
            meant = near([*EVERY, *rows.own], name, rows.kind)
            raise InputError(field, _unknown(name, rows.kind), rows.allowed(), meant) from None
        except InputError as error:
            raise InputError.prefixed(field, error) from None
        for other in found:
            if agent.same_as(other) and not {name, other.name} & set(rows.own):
                raise InputError(field, f"{name!r} is {other.name!r} by another name", "each agent once")
        found.append(agent)
    return found


def with_own(agents: Sequence[str | Agent]) -> tuple[list[str], list[Agent]]:
    """The names of these agents, and those among them that are given as rows."""
    try:
        found = list(agents)
    except TypeError:  # of what is no list at all
        found = []
    sort = isinstance(agents, Iterable) and not isinstance(agents, str | bytes | Mapping)
    if not sort or not all(isinstance(agent, str | Agent) for agent in found):
        raise InputError("agents", shown(agents), "a list of names or of rows")
    names = [agent if isinstance(agent, str) else agent.name for agent in found]
    return names, [agent for agent in found if isinstance(agent, Agent)]
