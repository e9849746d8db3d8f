"""vowpalwabbit: `--cb_explore_adf --bag 5`, the bootstrap that stands in for Thompson sampling there.

One weight vector for all arms (action-dependent features), in five bootstrap copies; the arm is drawn by how
many copies prefer it. Approximate: weights are learnt by online gradient steps, not by a posterior. The text
of the rows is made beforehand; parsing it, once a round, is the library's own time.
"""

import random

from vowpalwabbit import Workspace

from benchmarks.peers.peer import Array, Peer

DISTRIBUTION = "vowpalwabbit"
MODEL = "--cb_explore_adf --bag 5"
PARAMETERS = "shared, approximate"


class _Bag:
    def __init__(self, features: Array, seed: int) -> None:
        self._texts = ["\n".join(map(_line, rows)) for rows in features.tolist()]
        self._workspace = Workspace(f"{MODEL} --noconstant --quiet --random_seed {seed + 1}")
        self._rng, self._range = random.Random(seed), range(features.shape[1])

    def decide(self, t: int) -> int:
        self._examples = self._workspace.parse(self._texts[t])
        self._odds = self._workspace.predict(self._examples)
        return self._rng.choices(self._range, self._odds)[0]

    def update(self, t: int, arm: int, reward: float) -> None:
        del t  # its examples are still at hand
        self._examples[arm].set_label_string(f"0:{-reward}:{self._odds[arm]}")
        self._workspace.learn(self._examples)
        self._workspace.finish_example(self._examples)


def _line(row: list[float]) -> str:
    return "|f " + " ".join(f"{index}:{value:.8g}" for index, value in enumerate(row))


def make(features: Array, seed: int) -> Peer:
    return _Bag(features, seed)
