"""One contract for all choosers, with every arm open and with some of them closed."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2

from tests.agents.choose.cases import CHOOSERS, NOW, Case, K, T, every
from tests.problems import spd
from unfog.agents.base import Chooser, View
from unfog.agents.catalogue import Catalogue
from unfog.agents.choose import Epsilon, Greedy, Ids, RandUcb, TopTwo, Ucb
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.features.per_arm import PerArm
from unfog.features.quadratic import quadratic
from unfog.maths import gaussian
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Gaussian, as_matrix, blocks_from_moments
from unfog.simulation import play
from unfog.validation import InputError
from unfog.worlds.synthetic import GaussianProblem


def check_arms_and_trials(chooser: Chooser, case: Case, known: Knowledge, rng: np.random.Generator) -> None:
    for _ in range(8):
        normals = rng.standard_normal((T, chooser.normals(known)))
        arms = chooser.choose(case.view(), normals)
        assert (arms.shape, arms.dtype) == ((T,), np.dtype(np.intp))
        assert arms.min() >= 0
        assert arms.max() < K
        alone = [chooser.choose(case.one(i), normals[i]) for i in range(T)]
        assert all(arm.shape == () for arm in alone)
        assert arms.tolist() == alone


def check_rounds_of_trials(chooser: Chooser, case: Case, known: Knowledge, rng: np.random.Generator) -> None:
    numbers, normals = np.arange(T) ** 4, rng.standard_normal((T, chooser.normals(known)))
    arms = chooser.choose(case.view(numbers), normals)
    alone = [chooser.choose(case.one(i, np.asarray(numbers[i])), normals[i]) for i in range(T)]
    assert arms.tolist() == alone


def check_trials_that_share_all_but_normals(
    chooser: Chooser, case: Case, known: Knowledge, rng: np.random.Generator
) -> None:
    normals = rng.standard_normal((T, chooser.normals(known)))
    for open_arms in (None, np.arange(K) % 2 == 0):
        arms = chooser.choose(case.one(0, arms=open_arms), normals)
        assert arms.tolist() == [chooser.choose(case.one(0, arms=open_arms), normals[i]) for i in range(T)]


def check_probabilities(chooser: Chooser, case: Case, known: Knowledge, rng: np.random.Generator) -> None:
    draws = rng.standard_normal((20, T, chooser.normals(known)))
    found = chooser.probabilities(case.view(), draws)
    assert (found.shape, found.dtype) == ((T, K), np.dtype(np.float64))
    assert found.min() >= 0
    assert found.max() <= 1
    np.testing.assert_allclose(found.sum(-1), 1, rtol=1e-14)
    alone = chooser.probabilities(case.one(2), draws[:, 2])
    assert alone.shape == (K,)
    np.testing.assert_allclose(alone, found[2], rtol=1e-12)
    assert chooser.propensity in ("exact", "estimated")
    if chooser.propensity == "exact":
        np.testing.assert_array_equal(chooser.probabilities(case.view(), draws[:1]), found)


def check_frequencies(
    chooser: Chooser, view: View, known: Knowledge, rng: np.random.Generator, errors: float = 5.0
) -> None:
    """Whether arms come as often as the chooser says."""
    played, asked, width = 20_000, 4_000, chooser.normals(known)
    arms = chooser.choose(view, rng.standard_normal((played, width)))
    counts = np.bincount(arms, minlength=K)
    odds = chooser.probabilities(view, rng.standard_normal((asked, width)))
    guessed = chooser.propensity == "estimated"
    noise = odds * (1 - odds) * (1 / played + guessed / asked)
    assert np.all(np.abs(counts / played - odds) <= errors * np.sqrt(noise) + 1e-3 * guessed)
    if not guessed:
        some = odds > 0
        assert counts[~some].sum() == 0
        misfit = ((counts - played * odds)[some] ** 2 / (played * odds[some])).sum()
        # Chi-square: a right chooser fails with probability 1e-6.
        assert misfit <= chi2.isf(1e-6, some.sum() - 1) if some.sum() > 1 else misfit == 0


# Arms that may not be chosen.


def random_masks(rng: np.random.Generator, *shape: int) -> Any:
    """Half of the arms open, at least one of them."""
    some = rng.random((*shape, K)) < 0.5
    return some | (np.arange(K) == rng.integers(0, K, shape)[..., None])


def check_that_closed_arms_are_never_chosen(
    chooser: Chooser, case: Case, known: Knowledge, rng: np.random.Generator
) -> None:
    only = np.arange(K) == rng.integers(0, K, (T, 1))
    closed = 0
    for masks in [*(random_masks(rng, T) for _ in range(12)), only]:
        view, width = case.view(arms=masks), chooser.normals(known)
        normals = rng.standard_normal((T, width))
        arms = chooser.choose(view, normals)
        assert (arms.shape, arms.dtype) == ((T,), np.dtype(np.intp))
        assert masks[np.arange(T), arms].all()
        closed += int(np.count_nonzero(arms != chooser.choose(case.view(), normals)))
        found = chooser.probabilities(view, rng.standard_normal((6, T, width)))
        assert (found.shape, found.dtype) == ((T, K), np.dtype(np.float64))
        assert not found[~masks].any()
        assert found.min() >= 0
        np.testing.assert_allclose(found.sum(-1), 1, rtol=1e-14)
    np.testing.assert_array_equal(arms, only.argmax(-1))
    np.testing.assert_array_equal(found, only)
    assert closed > 50  # masks did make a difference


def check_that_closed_arms_are_as_good_as_not_there(
    chooser: Chooser, case: Case, known: Knowledge, rng: np.random.Generator
) -> None:
    """The same arms and the same laws as in a round that has the open arms alone."""
    width = chooser.normals(known)
    for trial, mask in enumerate(random_masks(rng, T)):
        left = np.flatnonzero(mask)
        fewer, masked = case.one(trial, left=left), case.one(trial, arms=mask)
        normals, draws = rng.standard_normal((40, width)), rng.standard_normal((15, width))
        np.testing.assert_array_equal(chooser.choose(masked, normals), left[chooser.choose(fewer, normals)])
        right = chooser.probabilities(fewer, draws)
        np.testing.assert_allclose(chooser.probabilities(masked, draws)[left], right, rtol=0, atol=1e-12)


def check_a_mask_with_all_arms_open(
    chooser: Chooser, case: Case, known: Knowledge, rng: np.random.Generator
) -> None:
    every_arm, width = np.ones((T, K), bool), chooser.normals(known)
    for _ in range(8):
        normals, draws = rng.standard_normal((T, width)), rng.standard_normal((9, T, width))
        plain, open_ = case.view(), case.view(arms=every_arm)
        np.testing.assert_array_equal(chooser.choose(open_, normals), chooser.choose(plain, normals))
        found, right = (chooser.probabilities(view, draws) for view in (open_, plain))
        np.testing.assert_allclose(found, right, rtol=1e-15)


@every
def test_arms_come_as_often_as_it_says(
    chooser: Chooser, case: Case, known: Knowledge, rng: np.random.Generator
) -> None:
    for masks in (None, np.arange(K) != rng.integers(0, K, (T, 1))):
        few = rng.standard_normal((50, T, chooser.normals(known)))
        rough = chooser.probabilities(case.view(arms=masks), few)
        trial = np.argsort((rough**2).sum(-1))[0]  # in which most is left to chance
        assert (rough[trial].max() == 1) == isinstance(chooser, Greedy | Ucb)
        # Five standard errors: among ten arms a right chooser fails with probability 6e-6.
        check_frequencies(chooser, case.one(trial, arms=None if masks is None else masks[trial]), known, rng)


COMPILED = ["thompson", "greedy", "ucb growing", "randucb", "epsilon falling", "ids", "ids drawn", "top two"]


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_numpy_and_compiled_jax_agree(
    name: str, case: Case, known: Knowledge, rng: np.random.Generator
) -> None:
    """Every branch of every chooser, with all arms open and with some of them closed, in one program."""
    chooser = CHOOSERS[name]
    width = chooser.normals(known)
    normals, draws = rng.standard_normal((T, width)), rng.standard_normal((3, T, width))

    def play(
        actions: Array, context: Context, belief: Gaussian, normals: Array, draws: Array, now: Any, masks: Any
    ) -> list[Any]:
        found = list[Any]()
        for arms in (None, masks):
            view = View(context, quadratic(actions).design(context), belief, now, arms)
            found += [chooser.choose(view, normals), chooser.probabilities(view, draws)]
        return found

    given = case.actions, case.context, case.belief, normals, draws, NOW, random_masks(rng, T)
    right = play(*given)
    found = jax.jit(play)(*jax.tree.map(jnp.asarray, given))
    assert [x.dtype for x in found] == [x.dtype for x in right]
    for arms in (0, 2):
        assert found[arms].tolist() == right[arms].tolist()
        np.testing.assert_allclose(found[arms + 1], right[arms + 1], rtol=1e-11, atol=1e-15)


def check_single_precision(chooser: Chooser, case: Case, known: Knowledge, rng: np.random.Generator) -> None:
    def single(tree: Any) -> Any:
        return jax.tree.map(lambda x: x.astype(np.float32), tree)

    draws = rng.standard_normal((4, T, chooser.normals(known)))
    for masks in (None, random_masks(rng, T)):
        context = single(case.context)
        design = quadratic(single(case.actions)).design(context)
        view = View(context, design, single(case.belief), NOW, masks)
        odds = chooser.probabilities(view, single(draws))
        assert odds.dtype == np.float32
        right = chooser.probabilities(case.view(arms=masks), draws)
        np.testing.assert_allclose(odds, right, atol=2e-4)


def check_a_belief_in_blocks(
    chooser: Chooser, case: Case, known: Knowledge, rng: np.random.Generator
) -> None:
    arms, dim = 4, 2
    mean, covs = rng.normal(size=(arms, dim)), np.stack([spd(rng, dim) for _ in range(arms)])
    blocks = blocks_from_moments(mean.reshape(-1), covs)
    flat = gaussian.from_moments(mean.reshape(-1), as_matrix(covs))
    np.testing.assert_array_equal(blocks.centre, flat.centre)
    context = Context(rng.normal(size=(50, dim)), spd(rng, dim))
    view = View(context, PerArm(arms, dim, intercept=False).design(context), blocks, NOW)
    zero = np.zeros(dim)
    known = Knowledge(zero, covs[0], covs[0], covs[0], blocks.centre, covs)
    normals = rng.standard_normal((50, chooser.normals(known)))
    np.testing.assert_array_equal(
        chooser.choose(view, normals), chooser.choose(view._replace(belief=flat), normals)
    )


def check_that_certainty_is_acted_upon(
    chooser: Chooser, case: Case, known: Knowledge, rng: np.random.Generator
) -> None:
    sure = case.one(0)._replace(belief=gaussian.certain(case.belief.mean[0]))
    normals = np.full(chooser.normals(known), 0.957)  # a coin of 0.4: neither explores nor takes the second
    assert chooser.choose(sure, normals) == case.explicit(0)[1].argmax()


def test_what_changes_with_the_rounds_must_be_told_which(case: Case) -> None:
    for chooser in [Ucb(growth=1.0), Epsilon(decay=1.0)]:
        check_what_changes_with_the_rounds_must_be_told_which(chooser, case)


def check_what_changes_with_the_rounds_must_be_told_which(chooser: Chooser, case: Case) -> None:
    with pytest.raises(ValueError, match=r"^time: "):
        chooser.choose(case.view(None), np.zeros((T, 2)))
    with pytest.raises(ValueError, match=r"^time: "):
        chooser.probabilities(case.view(None), np.zeros((1, T, 2)))


BAD: list[tuple[Any, dict[str, list[Any]]]] = [  # just beyond each end of what is allowed
    (Ucb, {"quantile": [0.49, 1.0], "growth": [-0.1]}),
    (RandUcb, {"level": [0.0], "tail": [2.0], "growth": [-0.1], "patience": [0.0]}),
    (Ids, {"samples": [-1, 10_001], "quantile": [0.4, 1.0]}),
    (Epsilon, {"epsilon": [-0.1, 1.1], "decay": [-1.0]}),
    (TopTwo, {"beta": [-0.1, 1.1], "redraws": [0, 10_001]}),
]


def test_bad_settings_are_refused_by_name() -> None:
    for make, fields in BAD:
        assert {*fields} == {*make.__dataclass_fields__}
        for field, bad in fields.items():
            for value in bad:
                with pytest.raises(InputError, match=rf"^{field}: .*; allowed: "):
                    make(**{field: value})


def test_choosers_go_by_name() -> None:
    for name, chooser in [
        ("alg1-ucb", Ucb()),
        ("alg1-exact-ucb:quantile=0.9:growth=0.5", Ucb(quantile=0.9, growth=0.5)),
        ("alg1-randucb:level=1.2:tail=6", RandUcb(level=1.2, tail=6.0)),
        ("kk-ids:samples=8", Ids(samples=8)),
        ("oracle-greedy", Greedy()),
        ("naive-epsilon:epsilon=0.2", Epsilon(epsilon=0.2)),
        ("alg2-toptwo:beta=0.9:redraws=2", TopTwo(beta=0.9, redraws=2)),
    ]:
        check_choosers_go_by_name(name, chooser)


def check_choosers_go_by_name(name: str, chooser: Chooser) -> None:
    agent = Catalogue()[name]
    assert agent.chooser == chooser
    assert agent.summary.startswith(Catalogue()[name.rpartition("-")[0]].summary + "; ")


@pytest.mark.slow
def test_both_engines_play_one_that_takes_no_normals() -> None:
    problem = GaussianProblem(dim=2, actions=4)
    small: Any = {"rounds": 12, "trials": 5, "decompose": False}
    right = play(problem, ["alg1-greedy"], **small)
    found = play(problem, ["alg1-greedy"], engine="jax", draws="numpy", precision="float64", **small)
    np.testing.assert_allclose(found.values["regret"], right.values["regret"], rtol=1e-9, atol=1e-9)
    own = play(problem, ["alg1-greedy"], engine="jax", precision="float64", **small)
    assert np.isfinite(own.values["regret"]).all()


def check_both_at_once(chooser: Chooser, case: Case, known: Knowledge, rng: np.random.Generator) -> None:
    """An arm and probabilities together are both to the bit, for a batch and for a round alone."""
    width = chooser.normals(known)
    normals, draws = rng.standard_normal((T, width)), rng.standard_normal((7, T, width))
    for masks in (None, random_masks(rng, T)):
        arm, chances = chooser.choose_with_probabilities(case.view(arms=masks), normals, draws)
        np.testing.assert_array_equal(arm, chooser.choose(case.view(arms=masks), normals))
        np.testing.assert_array_equal(chances, chooser.probabilities(case.view(arms=masks), draws))
        one = case.one(3, arms=None if masks is None else masks[3])
        arm, chances = chooser.choose_with_probabilities(one, normals[3], draws[:, 3])
        assert arm == chooser.choose(one, normals[3])
        np.testing.assert_array_equal(chances, chooser.probabilities(one, draws[:, 3]))


CHECKS = (
    check_arms_and_trials,
    check_rounds_of_trials,
    check_trials_that_share_all_but_normals,
    check_probabilities,
    check_that_closed_arms_are_never_chosen,
    check_that_closed_arms_are_as_good_as_not_there,
    check_a_mask_with_all_arms_open,
    check_single_precision,
    check_a_belief_in_blocks,
    check_that_certainty_is_acted_upon,
    check_both_at_once,
)


@every
def test_a_chooser_keeps_the_contract(chooser: Chooser, case: Case, known: Knowledge) -> None:
    for check in CHECKS:
        check(chooser, case, known, np.random.default_rng(20240711))
