"""Every rival by its agent's name: one file each, and one line here."""

from unfog.agents.rivals import (
    agrawal_goyal,
    kirschner_krause,
    linrel,
    linucb,
    oful,
    park_faradonbeh,
    polinucb,
    russo_van_roy,
    suplinucb,
    yang,
)
from unfog.agents.rivals.rival import Rival

MODULES = (
    linucb,
    suplinucb,
    linrel,
    oful,
    agrawal_goyal,
    russo_van_roy,
    kirschner_krause,
    yang,
    park_faradonbeh,
    polinucb,
)

RIVALS: dict[str, Rival] = {row.agent.name: row for module in MODULES for row in module.RIVALS}
