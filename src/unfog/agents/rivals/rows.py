"""Every rival by its agent's name: one file each, and one line here."""

from unfog.agents.rivals import clbbf, linucb
from unfog.agents.rivals.rival import Rival

MODULES = (clbbf, linucb)

RIVALS: dict[str, Rival] = {row.agent.name: row for module in MODULES for row in module.RIVALS}
