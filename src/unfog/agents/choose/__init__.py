"""Expected features and a belief about theta to an arm. One chooser a file."""

from unfog.agents.choose.epsilon import Epsilon
from unfog.agents.choose.greedy import Greedy
from unfog.agents.choose.ids import Ids
from unfog.agents.choose.rand_ucb import RandUcb
from unfog.agents.choose.thompson import Thompson
from unfog.agents.choose.top_two import TopTwo
from unfog.agents.choose.ucb import Ucb

__all__ = ["Epsilon", "Greedy", "Ids", "RandUcb", "Thompson", "TopTwo", "Ucb"]
