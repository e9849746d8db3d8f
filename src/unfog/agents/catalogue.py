"""Every named algorithm: one row each, naming its three parts."""

from collections.abc import Iterable, Mapping, Sequence

from unfog.agents.agent import Agent
from unfog.agents.choose import thompson
from unfog.agents.denoise import exact, identity, known_bias, plugin, prior_only
from unfog.agents.learn import conjugate
from unfog.inputs import InputError

PAPER = "Thompson Sampling for Stochastic Bandits with Noisy Contexts"
KK = "Kirschner and Krause, Stochastic Bandits with Context Distributions"
PF = "Park and Faradonbeh, Analysis of Thompson Sampling for Partially Observable Contextual Bandits"

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
]
# fmt: on

AGENTS = {row.name: row for row in _ROWS}


def named(names: Iterable[str], field: str = "agents", rows: Mapping[str, Agent] = AGENTS) -> list[Agent]:
    """The rows with these names, in this order; unknown and repeated names are refused."""
    chosen = list(names)
    if not chosen:
        raise InputError(field, "none named", f"one or more of {', '.join(rows)}")
    for position, name in enumerate(chosen):
        if name not in rows:
            raise InputError(field, f"no agent is called {name!r}", ", ".join(rows))
        if name in chosen[:position]:
            raise InputError(field, f"{name!r} is named twice", "each agent once")
    return [rows[name] for name in chosen]


def with_own(agents: Sequence[str | Agent]) -> tuple[list[str], dict[str, Agent]]:
    """The names of these agents, and the catalogue with those among them that are rows of one's own."""
    if isinstance(agents, str) or not all(isinstance(agent, str | Agent) for agent in agents):
        raise InputError("agents", repr(agents), "a list of names or of rows")
    own = {agent.name: agent for agent in agents if isinstance(agent, Agent)}
    return [agent if isinstance(agent, str) else agent.name for agent in agents], {**AGENTS, **own}
