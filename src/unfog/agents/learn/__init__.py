"""What rounds show of theta, and their rewards, to a belief about theta. One learner a file."""

from unfog.agents.learn.adf import Adf
from unfog.agents.learn.conjugate import Conjugate
from unfog.agents.learn.coupled import Coupled
from unfog.agents.learn.hetero import Hetero
from unfog.agents.learn.joint import Joint
from unfog.agents.learn.laplace import Laplace
from unfog.agents.learn.lmc import LMC
from unfog.agents.learn.pg import PG
from unfog.agents.learn.revisable import Revisable
from unfog.agents.learn.scaled import Scaled
from unfog.agents.learn.sites import Sites
from unfog.agents.learn.smoothing import Smoothing

__all__ = [
    "LMC",
    "PG",
    "Adf",
    "Conjugate",
    "Coupled",
    "Hetero",
    "Joint",
    "Laplace",
    "Revisable",
    "Scaled",
    "Sites",
    "Smoothing",
]
