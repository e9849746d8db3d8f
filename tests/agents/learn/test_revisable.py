"""The revisable learner against the sums it stands for, in exact fractions, and the conjugate learner."""

from fractions import Fraction
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.problems import covariance_error, evidence, inverse, random_knowledge, spd, within
from unfog.agents.base import Term
from unfog.agents.learn import Conjugate, Revisable
from unfog.agents.learn.revisable import State
from unfog.channel.knowledge import Knowledge
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Belief, Blocks, Gaussian
from unfog.validation import InputError

M = 5
LEARNER = Revisable()


class Story(NamedTuple):
    """Rounds as they stand by now."""

    rows: Array  # (n, m)
    variances: Array  # (n,)
    rewards: Array  # (n,)


def make(rng: np.random.Generator, rounds: int, scales: Array) -> Story:
    """Rows whose entries have these sizes."""
    rows = rng.normal(0.5, 1.0, (rounds, len(scales))) * scales
    return Story(rows, rng.uniform(0.5, 3.0, rounds), rng.normal(2.0, 3.0, rounds))


def fraction_sums(known: Knowledge, story: Story) -> tuple[Array, Array]:
    """Precision and natural mean without a rounding error but the last one."""
    exactly = np.vectorize(Fraction, otypes=[object])
    prior = inverse(known.prior_cov)
    precision = exactly(prior)
    natural_mean = exactly(prior @ known.prior_mean)
    for row, variance, reward in zip(*map(exactly, story), strict=True):
        precision = precision + np.outer(row, row) / variance
        natural_mean = natural_mean + row * reward / variance
    return precision.astype(np.float64), natural_mean.astype(np.float64)


def taught(learner: Revisable, known: Knowledge, story: Story) -> State:
    parameters, state = learner.setup(known), learner.start(known, None)
    for row, variance, reward in zip(*story, strict=True):
        state = learner.replace(parameters, state, None, Term(row, variance), reward)
    return state


def moments(known: Knowledge, state: State) -> tuple[Array, Array]:
    belief = LEARNER.belief(LEARNER.setup(known), state)
    assert isinstance(belief, Gaussian)
    return belief.mean, gaussian.covariance(belief)


def close(found: Array, right: Array, tolerance: float = 1e-10) -> None:
    """Entry by entry, in units of the geometric mean of the diagonal, so that no scale hides another."""
    size = np.sqrt(np.diag(right)) if right.ndim == 2 else np.abs(right).max()
    unit = np.outer(size, size) if right.ndim == 2 else size
    assert np.abs((found - right) / unit).max() < tolerance


def test_it_starts_from_the_prior(known: Knowledge) -> None:
    mean, cov = moments(known, LEARNER.start(known, None))
    np.testing.assert_allclose(mean, known.prior_mean, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(cov, known.prior_cov, rtol=1e-12, atol=1e-13)


def test_with_one_variance_it_is_the_conjugate_learner(known: Knowledge, rng: np.random.Generator) -> None:
    story, learner = make(rng, 60, np.ones(9)), Revisable(hetero=False)
    parameters, state = learner.setup(known), learner.start(known, None)
    conjugate = Conjugate()
    theirs = conjugate.start(known, None)
    for row, reward in zip(story.rows, story.rewards, strict=True):
        state = learner.update(parameters, state, evidence(row), reward)
        theirs = conjugate.update(conjugate.setup(known), theirs, evidence(row), reward)
    found = moments(known, state)
    np.testing.assert_allclose(found[0], theirs.mean, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found[1], gaussian.covariance(theirs), rtol=1e-9, atol=1e-12)


def revised(known: Knowledge, rng: np.random.Generator, story: Story, count: int) -> tuple[State, Story]:
    """Any round, any time, as often as it comes: the state, and the rounds as they stand then."""
    parameters, state = LEARNER.setup(known), taught(LEARNER, known, story)
    rows, variances, scales = story.rows.copy(), story.variances.copy(), np.abs(story.rows).mean(0)
    for t in rng.integers(len(rows), size=count):
        old = Term(rows[t].copy(), variances[t].copy())
        new = Term(rng.normal(0.5, 1.0, len(scales)) * scales, np.asarray(rng.uniform(0.5, 3.0)))
        state = LEARNER.replace(parameters, state, old, new, story.rewards[t])
        rows[t], variances[t] = new.row, new.variance
    return state, Story(rows, variances, story.rewards)


def test_a_thousand_replacements_are_a_recompute(rng: np.random.Generator) -> None:
    for scales in [np.ones(M), np.geomspace(1e-5, 1e5, M)]:
        check_a_thousand_replacements_are_a_recompute(scales, rng)


def check_a_thousand_replacements_are_a_recompute(scales: Array, rng: np.random.Generator) -> None:
    known = random_knowledge(1, size=M)
    known = known._replace(prior_cov=known.prior_cov / np.outer(scales, scales))
    state, story = revised(known, rng, make(rng, 40, scales), 1000)
    precision, natural_mean = fraction_sums(known, story)
    close(state.precision.value, precision)
    close(state.natural_mean.value / scales, natural_mean / scales)
    mean, cov = moments(known, state)
    unit = np.outer(scales, scales)
    right = inverse(precision / unit)
    close(cov * unit, right)
    close(mean * scales, right @ (natural_mean / scales))


def test_what_dwarfs_all_else_is_taken_back_whole(rng: np.random.Generator) -> None:
    """Precision terms up to 1e18 times the others: sums that forget what they round off fail from 1e6 on."""
    for outlier in [1e3, 1e6, 1e9]:
        check_what_dwarfs_all_else_is_taken_back_whole(outlier, rng)


def check_what_dwarfs_all_else_is_taken_back_whole(outlier: float, rng: np.random.Generator) -> None:
    known = random_knowledge(2, size=M)
    story = make(rng, 30, np.ones(M))
    wild = Term(outlier * rng.normal(size=M), np.asarray(0.7))
    parameters, state = LEARNER.setup(known), LEARNER.start(known, None)
    state = LEARNER.replace(parameters, state, None, wild, story.rewards[0])
    for t in range(1, 30):
        term = Term(story.rows[t], story.variances[t])
        state = LEARNER.replace(parameters, state, None, term, story.rewards[t])
    tame = Term(story.rows[0], story.variances[0])
    found = LEARNER.replace(parameters, state, wild, tame, story.rewards[0])
    precision, natural_mean = fraction_sums(known, story)
    close(found.precision.value, precision)
    close(found.natural_mean.value, natural_mean)
    mean, cov = moments(known, found)
    close(cov, inverse(precision))
    close(mean, inverse(precision) @ natural_mean)


def test_what_was_nearly_all_that_is_known_is_taken_back(rng: np.random.Generator) -> None:
    """The root is taken apart where that is safe, and made anew where it is not: the prior says this much."""
    for weak in [1.0, 1e-3, 1e-6]:
        check_what_was_nearly_all_that_is_known_is_taken_back(weak, rng)


def check_what_was_nearly_all_that_is_known_is_taken_back(weak: float, rng: np.random.Generator) -> None:
    known = random_knowledge(8, size=M)
    known = known._replace(prior_cov=known.prior_cov / weak)
    state, story = revised(known, rng, make(rng, 4, np.ones(M)), 200)
    precision, natural_mean = fraction_sums(known, story)
    mean, cov = moments(known, state)
    close(cov, inverse(precision), 1e-9)
    close(mean, inverse(precision) @ natural_mean, 1e-8)


def test_either_part_of_a_term_may_be_another(rng: np.random.Generator) -> None:
    for part in ["row", "variance"]:
        check_either_part_of_a_term_may_be_another(part, rng)


def check_either_part_of_a_term_may_be_another(part: str, rng: np.random.Generator) -> None:
    known, story = random_knowledge(5, size=M), make(rng, 6, np.ones(M))
    state, old = taught(LEARNER, known, story), Term(story.rows[2].copy(), story.variances[2].copy())
    if part == "row":
        story.rows[2, 1] += 0.5
    else:
        story.variances[2] *= 3.0
    new = Term(story.rows[2], story.variances[2])
    state = LEARNER.replace(LEARNER.setup(known), state, old, new, story.rewards[2])
    for found, right in zip(
        moments(known, state), moments(known, taught(LEARNER, known, story)), strict=True
    ):
        close(found, right)


def test_the_order_does_not_matter(rng: np.random.Generator) -> None:
    known, story = random_knowledge(3, size=M), make(rng, 25, np.ones(M))
    right = moments(known, taught(LEARNER, known, story))
    for _ in range(4):
        order = rng.permutation(25)
        found = moments(known, taught(LEARNER, known, Story(*(part[order] for part in story))))
        for ours, theirs in zip(found, right, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def test_the_variance_is_that_of_the_reward(rng: np.random.Generator) -> None:
    """Monte Carlo over theta and phi, within five standard errors: wrong once in a million runs."""
    known, spread = random_knowledge(4, size=M), spd(rng, M)
    belief = gaussian.from_moments(known.prior_mean, known.prior_cov)
    found = LEARNER.term(LEARNER.setup(known), evidence(np.ones(M), spread, belief)).variance
    draws = 200_000
    theta = rng.multivariate_normal(known.prior_mean, known.prior_cov, draws)
    phi, noise = rng.multivariate_normal(np.zeros(M), spread, draws), rng.normal(0, 0.7**0.5, draws)
    squares = ((theta * phi).sum(1) + noise) ** 2
    assert within(found, squares.mean(), squares.std() / draws**0.5)
    assert found > 1.5 * 0.7
    plain = Revisable(hetero=False).term(LEARNER.setup(known), evidence(np.ones(M), spread, belief))
    sure = LEARNER.term(LEARNER.setup(known), evidence(np.ones(M), None, belief))
    assert plain.variance == sure.variance == 0.7


def test_a_reward_adds_the_term_of_its_evidence(rng: np.random.Generator) -> None:
    known, spread = random_knowledge(4, size=M), spd(rng, M)
    parameters, state = LEARNER.setup(known), LEARNER.start(known, None)
    belief, row, reward = LEARNER.belief(parameters, state), rng.normal(size=M), np.asarray(1.3)
    one = LEARNER.update(parameters, state, evidence(row, spread, belief), reward)
    second = known.prior_cov + np.outer(known.prior_mean, known.prior_mean)
    variance = 0.7 + (spread * second).sum()
    precision, natural_mean = fraction_sums(known, Story(row[None], variance[None], reward[None]))
    close(one.precision.value, precision)
    close(one.natural_mean.value, natural_mean)


def walk(known: Knowledge, rows: Array, spreads: Array, rewards: Array) -> tuple[Belief, Array]:
    """Rounds (n, ..., m) taken in, the first one twice as likely wrong and then replaced by the last."""
    parameters, state = LEARNER.setup(known), LEARNER.start(known, None)
    terms = []
    for row, spread, reward in zip(rows, spreads, rewards, strict=True):
        shown = evidence(row, spread, LEARNER.belief(parameters, state))
        terms.append(LEARNER.term(parameters, shown))
        state = LEARNER.replace(parameters, state, None, terms[-1], reward)
    state = LEARNER.replace(parameters, state, terms[0], terms[-1], rewards[0])
    return LEARNER.belief(parameters, state), terms[-1].variance


def block_story(rng: np.random.Generator, trials: int) -> tuple[Knowledge, Array, Array, Array]:
    """Rows and covariances that lie within one of three blocks of two."""
    known = random_knowledge(6, size=6)._replace(prior_cov=np.stack([spd(rng, 2) for _ in range(3)]))
    rows, spreads = np.zeros((8, trials, 3, 2)), np.zeros((8, trials, 3, 2, 3, 2))
    for n in range(8):
        for i, arm in enumerate(rng.integers(3, size=trials)):
            rows[n, i, arm], spreads[n, i, arm, :, arm] = rng.normal(size=2), spd(rng, 2)
    wide = (8, trials, 6)
    return known, rows.reshape(wide), spreads.reshape(*wide, 6), rng.normal(size=(8, trials))


def test_blocks_are_the_whole(rng: np.random.Generator) -> None:
    known, rows, spreads, rewards = block_story(rng, 4)
    found, variance = walk(known, rows, spreads, rewards)
    dense = known._replace(prior_cov=gaussian.as_matrix(known.prior_cov))
    right, theirs = walk(dense, rows, spreads, rewards)
    assert isinstance(found, Blocks)
    np.testing.assert_allclose(variance, theirs, rtol=1e-12)
    np.testing.assert_allclose(found.mean.reshape(4, 6), right.mean, rtol=1e-11, atol=1e-12)
    covs = found.root @ found.root.mT
    for i in range(4):
        np.testing.assert_allclose(
            gaussian.as_matrix(covs[i]), (right.root @ right.root.mT)[i], rtol=1e-11, atol=1e-12
        )


@pytest.mark.slow
def test_trials_and_engines_agree_in_blocks(rng: np.random.Generator) -> None:
    known, *rounds = block_story(rng, 3)
    rounds = [part[:2] for part in rounds]
    right = jax.tree.leaves(walk(known, *rounds))
    compiled = jax.tree.leaves(jax.jit(walk)(*jax.tree.map(jnp.asarray, (known, *rounds))))
    for ours, theirs in zip(compiled, right, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-12)
    for i in range(3):
        alone = jax.tree.leaves(walk(known, *(part[:, i] for part in rounds)))
        for one, batch in zip(alone, right, strict=True):
            np.testing.assert_allclose(one, batch[i], rtol=1e-12, atol=1e-12)


def test_draws_have_the_moments(rng: np.random.Generator) -> None:
    """Within five standard errors in every entry: wrong once in 1e5 runs."""
    known = random_knowledge(7, size=M)
    state = taught(LEARNER, known, make(rng, 10, np.ones(M)))
    mean, cov = moments(known, state)
    draws = LEARNER.belief(LEARNER.setup(known), state).sample(rng.standard_normal((100_000, M)))
    assert within(draws.mean(0), mean, np.sqrt(np.diag(cov) / 100_000))
    assert within(np.cov(draws.T), cov, covariance_error(cov, 100_000))


def test_what_it_cannot_do_is_refused(known: Knowledge) -> None:
    with pytest.raises(InputError, match="hetero"):
        Revisable(hetero=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Gaussian noise"):
        LEARNER.setup(known._replace(reward_var=None))
