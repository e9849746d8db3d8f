"""What nature does: only here are the true contexts, the true bias and the true reward coefficients."""

from unfog.worlds.synthetic import GaussianProblem, LogisticProblem
from unfog.worlds.temporal import TemporalProblem

__all__ = ["GaussianProblem", "LogisticProblem", "TemporalProblem"]
