"""Published algorithms that unfog is compared with, such as LinUCB: three parts each, like our agents."""

from unfog.agents.baselines.base import Baseline
from unfog.agents.baselines.clbbf import CLBBF
from unfog.agents.baselines.context_distributions import KIRSCHNER_KRAUSE, YANG
from unfog.agents.baselines.imperfect import IMPERFECT
from unfog.agents.baselines.langevin import FEELGOOD, LMCTS, UNDERDAMPED
from unfog.agents.baselines.linear_ucb import LINREL, LINUCB, OFUL, SUPLINUCB
from unfog.agents.baselines.logistic import LAPLACE_TS, PGTS
from unfog.agents.baselines.meb import MEB
from unfog.agents.baselines.polinucb import POLINUCB
from unfog.agents.baselines.samplinucb import SAMPLINUCB
from unfog.agents.baselines.thompson import AGRAWAL_GOYAL, PARK_FARADONBEH, RUSSO_VAN_ROY

ROWS = (
    *LINUCB,
    *SUPLINUCB,
    *LINREL,
    *OFUL,
    *AGRAWAL_GOYAL,
    *RUSSO_VAN_ROY,
    *KIRSCHNER_KRAUSE,
    *YANG,
    *IMPERFECT,
    *SAMPLINUCB,
    *CLBBF,
    *MEB,
    *PARK_FARADONBEH,
    *POLINUCB,
    *LMCTS,
    *FEELGOOD,
    *UNDERDAMPED,
    *PGTS,
    *LAPLACE_TS,
)

BASELINES: dict[str, Baseline] = {row.agent.name: row for row in ROWS}
