"""Every rival by its agent's name: one file each, and one line here."""

from unfog.agents.rivals import (
    agrawal_goyal,
    linrel,
    linucb,
    oful,
    park_faradonbeh,
    russo_van_roy,
    suplinucb,
)
from unfog.agents.rivals.rival import Rival

MODULES = (
    linucb,
    suplinucb,
    linrel,
    oful,
    agrawal_goyal,
    russo_van_roy,
    park_faradonbeh,
)

RIVALS: dict[str, Rival] = {row.agent.name: row for module in MODULES for row in module.RIVALS}
