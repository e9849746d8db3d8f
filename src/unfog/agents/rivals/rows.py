"""Every rival by its agent's name: one file each, and one line here."""

from unfog.agents.rivals import imperfect, linucb, samplinucb
from unfog.agents.rivals.rival import Rival

MODULES = (linucb, samplinucb, imperfect)

RIVALS: dict[str, Rival] = {row.agent.name: row for module in MODULES for row in module.RIVALS}
