"""What nature does: the only rooms that hold the truth (theta*, gamma*, c_t)."""

from unfog.worlds.synthetic import GaussianProblem, LogisticProblem
from unfog.worlds.temporal import TemporalProblem

__all__ = ["GaussianProblem", "LogisticProblem", "TemporalProblem"]
