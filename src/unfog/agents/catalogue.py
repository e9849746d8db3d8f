"""Every named algorithm: one row each, naming its three parts.

The learner of a row is that of rewards with Gaussian noise. For rewards of 0 or 1 the same names mean the
paper's learner for these, Langevin Monte Carlo, and others follow from a row's name and a learner's: see
agents/recipes.py.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from inspect import signature

from unfog.agents.agent import Agent
from unfog.agents.choose import thompson
from unfog.agents.choose.ucb import Ucb
from unfog.agents.denoise import drift, exact, identity, known_bias, plugin, prior_only
from unfog.agents.denoise import incomplete as records
from unfog.agents.denoise.robust import Robust
from unfog.agents.denoise.unknown_noise import UnknownNoise
from unfog.agents.learn import conjugate
from unfog.agents.learn.hetero import Hetero
from unfog.agents.learn.revisable import Ledger
from unfog.agents.names import CHOOSERS, LEARNERS, spelled_out
from unfog.inputs import InputError
from unfog.model.rewards import KINDS

PAPER = "Thompson Sampling for Stochastic Bandits with Noisy Contexts"
KK = "Kirschner and Krause, Stochastic Bandits with Context Distributions"
PF = "Park and Faradonbeh, Analysis of Thompson Sampling for Partially Observable Contextual Bandits"

OURS = "unfog, docs/agents.md"

# fmt: off
_ROWS = [
    Agent("alg1", plugin.from_noisy, conjugate, thompson,
          "learns the bias from noisy contexts, plug-in denoising", f"{PAPER}, Algorithm 1"),
    Agent("alg2", plugin.from_pairs, conjugate, thompson,
          "shown true contexts late: learns bias and reward from them", f"{PAPER}, Algorithm 2",
          reveals=True),
    Agent("naive", identity, conjugate, thompson,
          "takes the noisy context for the true one", f"{PAPER}, TS_naive"),
    Agent("oracle", known_bias, conjugate, thompson,
          "is told the bias", f"{PF}; {PAPER}, TS_oracle",
          privileged=True),
    Agent("kk", prior_only, conjugate, thompson,
          "ignores the noisy context, knows its distribution", f"{KK}; {PAPER}, TS_kk"),
    Agent("alg1-exact", exact.from_noisy, conjugate, thompson,
          "alg1 with the exact posterior of the context", "unfog, docs/denoising.md"),
    Agent("alg2-exact", exact.from_pairs, conjugate, thompson,
          "alg2 with the exact posterior of the context", "unfog, docs/denoising.md",
          reveals=True),
    Agent("unfog", exact.from_noisy, Hetero(), Ucb(),
          "our default: exact denoising, rewards weighed by what they hide, Bayes-UCB", OURS),
    Agent("unfog-delayed", exact.from_pairs, Hetero(), Ucb(),
          "our default where true contexts come after rewards", OURS,
          reveals=True),
    Agent("unfog-oracle", known_bias, Hetero(), Ucb(),
          "our default, told the bias: what not knowing it costs", OURS,
          privileged=True),
    Agent("gaps", records, Hetero(), Ucb(),
          "knows which coordinates of the noisy context were lost", OURS),
    Agent("late", records, Ledger(), Ucb(),
          "takes true contexts late, in any order, whole or in part; knows of gaps", OURS,
          reveals=True),
    Agent("unknown-noise", UnknownNoise(), Ledger(), Ucb(),
          "learns the covariance of the noise, too, from what is revealed", OURS,
          reveals=True),
    Agent("drift", drift.from_noisy, Hetero(), Ucb(),
          "follows a bias that walks", OURS),
    Agent("robust", Robust(), Hetero(), Ucb(),
          "expects outliers: noise with heavy tails", OURS),
]
# fmt: on

AGENTS = {row.name: row for row in _ROWS}


class Catalogue(Mapping[str, Agent]):
    """The agents for one kind of rewards by name, with rows of one's own if there are any."""

    def __init__(self, kind: str = "gaussian", own: Iterable[Agent] = ()) -> None:
        """For a kind of rewards."""
        self.kind, self.own = kind, {row.name: row for row in own}

    def __iter__(self) -> Iterator[str]:
        """The names to list; a name that spells out a learner is known too."""
        return iter({**AGENTS, **self.own})

    def __len__(self) -> int:
        return len({**AGENTS, **self.own})

    def __getitem__(self, name: str) -> Agent:
        return self.own[name] if name in self.own else _row(self.kind, name)

    def knows(self, agent: Agent) -> bool:
        """Whether the agent's name says all there is to say of it."""
        try:
            return _row(self.kind, agent.name) is agent
        except (KeyError, InputError):
            return False

    def allowed(self) -> str:
        """What may be named, in words."""
        parts = [name for name, learner in LEARNERS.items() if learner.kind == self.kind]
        more = f"; each also with -{', -'.join([*parts, *CHOOSERS])}" if parts else ""
        return ", ".join(self) + more


@cache
def _row(kind: str, name: str) -> Agent:
    return AGENTS[name] if kind == "gaussian" and name in AGENTS else spelled_out(AGENTS, name, kind)


def named(names: Iterable[str], field: str = "agents", rows: Catalogue | None = None) -> list[Agent]:
    """The rows with these names, in this order; unknown and repeated names are refused."""
    rows, chosen, found = rows or Catalogue(), list(names), []
    if not chosen:
        raise InputError(field, "none named", f"one or more of {rows.allowed()}")
    for position, name in enumerate(chosen):
        if name in chosen[:position]:
            raise InputError(field, f"{name!r} is named twice", "each agent once")
        try:
            found.append(rows[name])
        except KeyError:
            raise InputError(field, f"no agent is called {name!r}", rows.allowed()) from None
        except InputError as error:
            raise InputError.prefixed(field, error) from None
        _check(found, field, rows)
    return found


def _check(found: Sequence[Agent], field: str, rows: Catalogue) -> None:
    """The last of these agents learns from such rewards, and is not one of the others under another name."""
    *others, agent = found
    kind = rows.kind
    learns = getattr(agent.learner, "kind", None)
    if isinstance(agent.learner, type) or learns not in KINDS:
        raise InputError(field, f"the learner of {agent.name!r} is {agent.learner!r}", "a learner, made")
    _check_parts(agent, field)
    if learns != kind:
        raise InputError(field, f"{agent.name!r} learns from {learns} rewards", f"agents for {kind} rewards")
    for other in others:
        if _alike(agent, other) and rows.knows(agent) and rows.knows(other):
            raise InputError(field, f"{agent.name!r} is {other.name!r} by another name", "each agent once")


def _alike(one: Agent, other: Agent) -> bool:
    """Whether two rows do the same. Parts that are tuples are equal to others of the same content."""
    parts = [(a.denoiser, a.learner, a.chooser) for a in (one, other)]
    same = all(type(a) is type(b) and a == b for a, b in zip(*parts, strict=True))
    return same and (one.reveals, one.privileged) == (other.reveals, other.privileged)


def _check_parts(agent: Agent, field: str) -> None:
    """Parts that someone made: they must be made, and a chooser must take the number of the round."""
    for place, part in (("denoiser", agent.denoiser), ("chooser", agent.chooser)):
        if isinstance(part, type):
            raise InputError(field, f"the {place} of {agent.name!r} is {part!r}", f"a {place}, made")
    try:
        signature(agent.chooser.choose).bind(None, None, None, None)
    except TypeError:
        problem = f"the chooser of {agent.name!r} cannot be told which round it is"
        raise InputError(field, problem, "choose(design, belief, normals, number=None)") from None


def with_own(agents: Sequence[str | Agent]) -> tuple[list[str], list[Agent]]:
    """The names of these agents, and those among them that are given as rows."""
    if isinstance(agents, str) or not all(isinstance(agent, str | Agent) for agent in agents):
        raise InputError("agents", repr(agents), "a list of names or of rows")
    names = [agent if isinstance(agent, str) else agent.name for agent in agents]
    return names, [agent for agent in agents if isinstance(agent, Agent)]
