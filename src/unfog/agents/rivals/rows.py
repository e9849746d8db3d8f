"""Every rival by its agent's name: one file each, and one line here."""

from unfog.agents.rivals import (
    agrawal_goyal,
    clbbf,
    feelgood,
    imperfect,
    kirschner_krause,
    laplace_ts,
    linrel,
    linucb,
    lmcts,
    meb,
    oful,
    park_faradonbeh,
    pgts,
    polinucb,
    russo_van_roy,
    samplinucb,
    suplinucb,
    underdamped,
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
    imperfect,
    samplinucb,
    clbbf,
    meb,
    park_faradonbeh,
    polinucb,
    lmcts,
    feelgood,
    underdamped,
    pgts,
    laplace_ts,
)

RIVALS: dict[str, Rival] = {row.agent.name: row for module in MODULES for row in module.RIVALS}
