"""How many nodes a logistic world takes for its integrals."""

from unfog.worlds.synthetic import LogisticProblem


def test_nodes_are_enough_for_the_widest_belief() -> None:
    """A channel with a bias far larger than contexts: a belief is then far wider than contexts are."""
    wide = LogisticProblem(dim=2, actions=5, noise_cov=0.1, bias_cov=20.0)
    plain = LogisticProblem(dim=2, actions=5)
    assert wide.rewards.nodes > 3 * plain.rewards.nodes  # type: ignore[attr-defined]
