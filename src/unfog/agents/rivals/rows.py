"""Every rival by its agent's name: one file each, and one line here."""

from unfog.agents.rivals import linucb, park_faradonbeh
from unfog.agents.rivals.rival import Rival

MODULES = (linucb, park_faradonbeh)

RIVALS: dict[str, Rival] = {row.agent.name: row for module in MODULES for row in module.RIVALS}
