"""An agent that is taught by a whole log.

It sees every round in order: it says with which probabilities it would have taken each arm, is then told the
arm that was drawn and what it was paid, and goes on. These probabilities hang on the past alone, so that
every estimator can weigh them; but for the units of rewards, and of readings without a channel, which are
those of the whole log (evaluation/pupil.py). What is valued is the agent as the log teaches it: its own
choices would have taught it other things, which is what replay.py is for.
"""

from collections.abc import Callable

import numpy as np

from unfog.evaluation.pupil import Life, Pupil
from unfog.maths.arrays import Array

Tick = Callable[[int], None]


def silent(_: int) -> None:
    """Nobody is told of progress."""


def taught(one: Pupil, tick: Tick = silent) -> Array:
    """With which probability it would have taken each arm in every round: (n, K)."""
    log, normals, life = one.scene.log, one.normals(), Life(one)
    found = np.empty((log.rounds, len(log.arms)))
    for number in range(log.rounds):
        considered = one.consider(life.memory(number), number, number)
        found[number] = one.agent.chooser.probabilities(considered.view, normals.next())[0]
        life.learn(considered, number)
        tick(1)
    return found
