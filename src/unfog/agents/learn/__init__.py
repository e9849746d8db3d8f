"""Learners: from arms, believed contexts and rewards to a belief about theta, the weights of the reward."""

from unfog.agents.learn.adf import Adf, Sites
from unfog.agents.learn.conjugate import Conjugate, Hetero
from unfog.agents.learn.coupled import Coupled
from unfog.agents.learn.empirical_bayes import EmpiricalBayes, LinearProbability
from unfog.agents.learn.hindsight import Joint, Smoothing
from unfog.agents.learn.logistic import Laplace
from unfog.agents.learn.revisable import Revisable
from unfog.agents.learn.samplers import LMC, PG
from unfog.agents.learn.scaled import Scaled

__all__ = [
    "LMC",
    "PG",
    "Adf",
    "Conjugate",
    "Coupled",
    "EmpiricalBayes",
    "Hetero",
    "Joint",
    "Laplace",
    "LinearProbability",
    "Revisable",
    "Scaled",
    "Sites",
    "Smoothing",
]
