"""Top-two Thompson sampling against its definition, draw by draw."""

import numpy as np

from tests.agents.choose.cases import Case, K, M, T
from unfog.agents.choose import TopTwo


def test_top_two_follows_its_definition(case: Case, rng: np.random.Generator) -> None:
    for redraws in [1, 4]:
        check_top_two_follows_its_definition(redraws, case, rng)


def check_top_two_follows_its_definition(redraws: int, case: Case, rng: np.random.Generator) -> None:
    chooser, last = TopTwo(beta=0.6, redraws=redraws), 0
    for trial in range(T):
        normals = rng.standard_normal((1 + redraws) * M + 2)
        rows, mean, _ = case.explicit(trial)
        scores = mean + normals[:-2].reshape(-1, M) @ case.belief.root[trial].T @ rows.T
        leader, *others = (int(line.argmax()) for line in scores)
        different = [arm for arm in others if arm != leader]
        challenger = different[0] if different else int(np.argsort(scores[-1])[-2])
        last += not different
        led = np.exp(-(normals[-2:] ** 2).sum() / 2) < 0.6
        assert chooser.choose(case.one(trial), normals) == (leader if led else challenger)
        odds = chooser.probabilities(case.one(trial), normals[None])
        np.testing.assert_allclose(odds, 0.6 * np.eye(K)[leader] + 0.4 * np.eye(K)[challenger])
    assert last > 0
