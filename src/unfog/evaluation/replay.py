"""A learning agent replayed on a log: only rounds count that come out as if it had played them itself.

It chooses, and a round counts if the logger drew that arm, and then with probability c / p, c the smallest
probability in the log: so each of its arms counts as often, and c of all rounds do. What it learns, it learns
from its own choices; the mean of the rewards that count is what it would have earned in as many rounds (L.
Li, W. Chu, J. Langford and X. Wang, *Unbiased Offline Evaluation of Contextual-bandit-based News Article
Recommendation Algorithms*, for loggers that draw evenly).
"""

from typing import NamedTuple

import numpy as np

from unfog.evaluation.intervals import Value
from unfog.evaluation.pupil import Life, Pupil
from unfog.evaluation.taught import Tick, silent
from unfog.maths.arrays import Array, Ints
from unfog.maths.random import generator


class Replayed(NamedTuple):
    """The rounds that count."""

    accepted: Ints  # (rounds,)  which

    def value(self, reward: Array) -> Value:
        """The mean of their rewards."""
        paid, moved = reward[self.accepted], np.zeros(len(reward))
        if len(paid) < 2:
            return Value(np.nan, np.nan, moved)
        mean = float(paid.mean())
        moved[self.accepted] = (paid - mean) / len(paid)
        return Value(mean, float(np.sqrt((moved**2).sum())), moved)


def replayed(one: Pupil, tick: Tick = silent) -> Replayed:
    """Round by round."""
    log, normals, life = one.scene.log, one.normals(), Life(one)
    chances = log.probability if log.probabilities is None else log.probabilities[log.probabilities > 0]
    least, accepted = float(chances.min()), list[int]()
    uniforms = generator(one.scene.seed, 0, "replay").random(log.rounds)
    for number in range(log.rounds):
        tick(1)
        if uniforms[number] * log.probability[number] >= least:
            continue
        considered = one.consider(life.memory(number), number, len(accepted))
        if int(one.agent.chooser.choose(considered.view, normals.next()[0])[0]) == log.arm[number]:
            accepted.append(number)
            life.learn(considered, number)
    return Replayed(np.array(accepted, np.intp))
