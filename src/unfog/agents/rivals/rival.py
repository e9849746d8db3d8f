"""What there is to say of a rival: its agent, what it must be told and sees, and where it is at home."""

from typing import NamedTuple

from unfog.agents.assemble import Agent


class Rival(NamedTuple):
    """A published system, as an agent. Its reference and a summary are the agent's."""

    agent: Agent
    told: str  # what it must be told, in words
    sees: str  # of contexts, in words
    regret: str  # the loss of theory/regret.py that its paper bounds
    home: str = ""  # the experiment of the catalog with its paper's own problem; empty where it has none
    tuned: str = ""  # the setting that says how much it explores; empty where it has none
    grid: tuple[float, ...] = ()  # of that setting, to choose from on other seeds: as many values for all
    sure: str = "high"  # how sure we are of its formulas and constants: high, medium or low

    @property
    def privileged(self) -> bool:
        """Whether it is told or shown more than our default: the bias, or true contexts."""
        return self.agent.privileged is not None or self.agent.sees_context
