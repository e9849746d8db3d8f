"""Choosers: from expected features and a belief about theta to an arm."""

from unfog.agents.choose.greedy import Epsilon, Greedy
from unfog.agents.choose.ids import Ids
from unfog.agents.choose.thompson import Thompson, TopTwo
from unfog.agents.choose.ucb import RandUcb, Ucb

__all__ = ["Epsilon", "Greedy", "Ids", "RandUcb", "Thompson", "TopTwo", "Ucb"]
