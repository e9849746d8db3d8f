"""The contract of choosers: `check_chooser` runs it on any of them."""

from typing import Any

import numpy as np

from unfog.agents.base import (
    Chooser,
    Denoiser,
    Evidence,
    Learner,
    LooksBack,
    Privilege,
    Privileged,
    Rewinds,
    Tells,
    View,
)
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths.arrays import Array
from unfog.maths.gaussian import Belief, from_moments
from unfog.testing.common import (
    ROUNDS,
    TRIALS,
    check_value,
    normals,
    problem,
    require,
    same,
    truth,
    writes_nothing,
)

DRAWS = 1000
FEW = 10  # of a chooser that takes no normals, and so chooses the same arm again and again
SIGMAS = 5.0  # a right chooser fails once in some hundred thousand times, and the draws are always the same
MASKS = np.array([[1, 0, 1, 1, 0], [0, 0, 0, 1, 0], [1, 1, 1, 1, 1]], bool)  # one for each trial


def check_chooser(chooser: Chooser, learner: Learner | None = None, denoiser: Denoiser | None = None) -> None:
    """Raise ContractError, by the name of the chooser and of the rule, where it breaks one.

    Beliefs are Gaussians unless there is a learner, whose beliefs it is to be shown: some choosers go with
    one kind of learner alone. The belief of a learner that looks back comes with the denoiser beside it.

    >>> import unfog
    >>> unfog.testing.check_chooser(unfog.choose.Ucb(quantile=0.8))  # says nothing where all is well
    """
    who = check_value("chooser", chooser)
    width = chooser.normals(problem().knowledge())
    draws = normals("choices", DRAWS if width else FEW, TRIALS, width)
    for arms in (None, np.ones((TRIALS, 5), bool), MASKS):
        view = _view(arms, learner, denoiser)
        taken = np.stack([writes_nothing(who, chooser.choose, view, one) for one in draws])
        require(taken.shape == draws.shape[:-1], who, f"chooses arms of shape {taken.shape[1:]}")
        require(taken.dtype.kind in "iu", who, "chooses what is no whole number")
        _check_mask(who, taken, arms)
        _check_probabilities(who, chooser, view, taken, draws)
        if isinstance(chooser, Tells):
            _check_tells(who, chooser, view, taken[0], draws[0])
            _check_told_probability(who, chooser, chooser, view, draws)
    views = [_view(arms, learner, denoiser) for arms in (None, np.ones((TRIALS, 5), bool))]
    whole = [chooser.choose(view, draws[0]) for view in views]
    require((whole[0] == whole[1]).all(), who, "chooses otherwise where all arms are named as available")


def _view(arms: Any, learner: Learner | None = None, denoiser: Denoiser | None = None) -> View:
    """Beliefs in which no arm is the best for certain."""
    world = problem("gaussian" if learner is None else learner.rewards)
    known, features = world.knowledge(), truth(world).features
    context = Context(normals("believed", TRIALS, 2), known.context_cov)
    away = 0.1 * normals("theta", TRIALS, *known.prior_mean.shape)
    belief = from_moments(known.prior_mean + away, 0.3 * known.prior_cov)
    reach = np.full((TRIALS, 2), 0.1)  # features and reach are for those who ask for more
    view = View(
        context, features.design(context), belief, np.asarray(4), arms, features=features, reach=reach
    )
    if learner is None:
        return view
    if LooksBack in type(learner).__mro__:
        return _looked_back(learner, denoiser, known, view)
    return view._replace(belief=_learnt(learner, known, view))


def _looked_back(learner: Any, denoiser: Any, known: Knowledge, view: View) -> View:
    """What it believes before any reward; without a denoiser, as if there were no learner."""
    if Rewinds not in type(denoiser).__mro__:
        return view
    told = Privilege(np.zeros(2)) if isinstance(denoiser, Privileged) else None
    parameters, noisy = denoiser.setup(known, told), view.context.mean
    hindsight = denoiser.hindsight(parameters, denoiser.start(parameters), noisy)
    state = learner.start(known, None)
    belief, context = learner.look_back(learner.setup(known), state, view.features, hindsight, noisy)
    assert view.features is not None
    return view._replace(context=context, design=view.features.design(context), belief=belief)


def _learnt(learner: Learner, known: Knowledge, view: View) -> Belief:
    """What a learner believes after a few rewards; what it is told of how arms were chosen is zero."""
    parameters, state = learner.setup(known), learner.start(known, None)
    for t in range(ROUNDS):
        assert view.features is not None
        design = view.features.at(normals(f"context {t}", TRIALS, 2))
        belief = learner.belief(parameters, state)
        told = view.features, design, belief, np.full(TRIALS, t % 5)
        evidence = Evidence(*told, context=view.context, told=np.zeros(TRIALS))
        paid = (normals(f"paid {t}", TRIALS) > 0).astype(np.float64)
        state = learner.update(parameters, state, evidence, paid)
    return learner.belief(parameters, state)


def _check_tells(who: str, chooser: Tells, view: View, taken: Array, draws: Array) -> None:
    """It tells how it chose what it chooses, with a number for every trial."""
    arm, told = writes_nothing(who, chooser.choose_telling, view, draws)
    require((arm == taken).all(), who, "chooses otherwise where it tells how")
    require(told.shape == (TRIALS,) and told.dtype.kind == "f", who, "tells what is no number for each trial")


def _check_told_probability(who: str, chooser: Chooser, able: Tells, view: View, draws: Array) -> None:
    """What is told by this word is the probability of the arm, where that is known."""
    if able.tells != "probability" or chooser.propensity != "exact":
        return
    arm, told = able.choose_telling(view, draws[0])
    said = np.broadcast_to(chooser.probabilities(view, draws), (TRIALS, 5))
    require(same(told, said[np.arange(TRIALS), arm]), who, "tells another probability than it chooses with")


def _check_mask(who: str, taken: Array, arms: Any) -> None:
    """Arms that there are, and of these the ones that may be chosen."""
    none = taken[(taken < 0) | (taken > 4)]
    require(none.size == 0, who, f"chooses arm {next(iter(none), 0)}, where arms are numbered 0 to 4")
    allowed = np.ones((TRIALS, 5), bool) if arms is None else arms
    fine = allowed[np.arange(TRIALS), taken]
    require(fine.all(), who, "ignores the mask: it chooses arms that may not be chosen")


def _check_probabilities(who: str, chooser: Chooser, view: View, taken: Array, draws: Array) -> None:
    """They are a law over the arms that may be chosen, and the law of the choices."""
    said = np.broadcast_to(chooser.probabilities(view, draws), (TRIALS, 5))
    closed = np.zeros((TRIALS, 5), bool) if view.arms is None else view.arms == 0
    require((said >= 0).all() and same(said.sum(-1), 1.0), who, "its probabilities do not add up to one")
    require(not said[closed].any(), who, "gives a probability to arms that may not be chosen")
    seen = (taken[..., None] == np.arange(5)).mean(0)
    error = SIGMAS * np.sqrt(np.maximum(said * (1 - said), 1 / DRAWS) / DRAWS)
    far = np.abs(seen - said) > error
    require(not far.any(), who, f"says {chooser.propensity} probabilities with which it does not choose")
