"""The contract of choosers: `check_chooser` tests any chooser against it."""

from typing import Any

import numpy as np

from unfog.agents.base import (
    Chooser,
    Denoiser,
    Evidence,
    Learner,
    LooksBack,
    Privilege,
    ReportsChoice,
    Rewinds,
    SeesBias,
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
FEW = 10  # draws for a chooser without normals, which always chooses the same arm
SIGMAS = 5.0  # a correct chooser fails once in some hundred thousand times; the draws are always the same
MASKS = np.array([[1, 0, 1, 1, 0], [0, 0, 0, 1, 0], [1, 1, 1, 1, 1]], bool)  # one for each trial


def check_chooser(chooser: Chooser, learner: Learner | None = None, denoiser: Denoiser | None = None) -> None:
    """Raise ContractError, with the name of the chooser and the rule, if it breaks one.

    Beliefs are Gaussian unless you give a learner, whose beliefs are used instead: some choosers work with
    only one kind of learner. A learner that looks back needs a denoiser, too.

    >>> import unfog
    >>> unfog.testing.check_chooser(unfog.choose.Ucb(quantile=0.8))  # says nothing where all is well
    """
    who = check_value("chooser", chooser)
    width = chooser.normals(problem().knowledge())
    draws = normals("choices", DRAWS if width else FEW, TRIALS, width)
    for arms in (None, np.ones((TRIALS, 5), bool), MASKS):
        view = _make_view(arms, learner, denoiser)
        choices = np.stack([writes_nothing(who, chooser.choose, view, one) for one in draws])
        require(choices.shape == draws.shape[:-1], who, f"chooses arms of shape {choices.shape[1:]}")
        require(choices.dtype.kind in "iu", who, "chooses what is no whole number")
        _check_mask(who, choices, arms)
        _check_probabilities(who, chooser, view, choices, draws)
        if isinstance(chooser, ReportsChoice):
            _check_report(who, chooser, view, choices[0], draws[0])
            _check_exact_probability(who, chooser, chooser, view, draws)
    views = [_make_view(arms, learner, denoiser) for arms in (None, np.ones((TRIALS, 5), bool))]
    by_view = [chooser.choose(view, draws[0]) for view in views]
    require((by_view[0] == by_view[1]).all(), who, "chooses otherwise where all arms are named as available")


def _make_view(arms: Any, learner: Learner | None = None, denoiser: Denoiser | None = None) -> View:
    """A view with beliefs under which any arm may be the best."""
    world = problem("gaussian" if learner is None else learner.rewards)
    known, features = world.knowledge(), truth(world).features
    context = Context(normals("believed", TRIALS, 2), known.context_cov)
    deviation = 0.1 * normals("theta", TRIALS, *known.prior_mean.shape)
    belief = from_moments(known.prior_mean + deviation, 0.3 * known.prior_cov)
    reach = np.full((TRIALS, 2), 0.1)  # some choosers need features and reach, too
    view = View(
        context, features.design(context), belief, np.asarray(4), arms, features=features, reach=reach
    )
    if learner is None:
        return view
    if LooksBack in type(learner).__mro__:
        return _look_back(learner, denoiser, known, view)
    return view._replace(belief=_learn(learner, known, view))


def _look_back(learner: Any, denoiser: Any, known: Knowledge, view: View) -> View:
    """The view with the learner's belief before any reward; unchanged if the denoiser cannot rewind."""
    if Rewinds not in type(denoiser).__mro__:
        return view
    privilege = Privilege(np.zeros(2)) if isinstance(denoiser, SeesBias) else None
    parameters, noisy = denoiser.setup(known, privilege), view.context.mean
    hindsight = denoiser.hindsight(parameters, denoiser.start(parameters), noisy)
    state = learner.start(known, None)
    belief, context = learner.look_back(learner.setup(known), state, view.features, hindsight, noisy)
    assert view.features is not None
    return view._replace(context=context, design=view.features.design(context), belief=belief)


def _learn(learner: Learner, known: Knowledge, view: View) -> Belief:
    """A learner's belief after a few rewards; the numbers that tell how arms were chosen are zero."""
    parameters, state = learner.setup(known), learner.start(known, None)
    for t in range(ROUNDS):
        assert view.features is not None
        design = view.features.at(normals(f"context {t}", TRIALS, 2))
        belief = learner.belief(parameters, state)
        args = view.features, design, belief, np.full(TRIALS, t % 5)
        evidence = Evidence(*args, context=view.context, choice_report=np.zeros(TRIALS))
        reward = (normals(f"paid {t}", TRIALS) > 0).astype(np.float64)
        state = learner.update(parameters, state, evidence, reward)
    return learner.belief(parameters, state)


def _check_report(who: str, chooser: ReportsChoice, view: View, choice: Array, draws: Array) -> None:
    """Check that `choose_and_report` chooses the same arms, with a number for every trial."""
    arm, value = writes_nothing(who, chooser.choose_and_report, view, draws)
    require((arm == choice).all(), who, "chooses otherwise where it reports how")
    require(
        value.shape == (TRIALS,) and value.dtype.kind == "f", who, "reports what is no number for each trial"
    )


def _check_exact_probability(
    who: str, chooser: Chooser, able: ReportsChoice, view: View, draws: Array
) -> None:
    """Check that a chooser that tells probabilities tells that of the arm, if it is exact."""
    if able.reports != "probability" or chooser.propensity != "exact":
        return
    arm, value = able.choose_and_report(view, draws[0])
    probs = np.broadcast_to(chooser.probabilities(view, draws), (TRIALS, 5))
    require(
        same(value, probs[np.arange(TRIALS), arm]),
        who,
        "reports another probability than it chooses with",
    )


def _check_mask(who: str, choices: Array, arms: Any) -> None:
    """Check that the chosen arms exist and may be chosen."""
    invalid = choices[(choices < 0) | (choices > 4)]
    require(invalid.size == 0, who, f"chooses arm {next(iter(invalid), 0)}, where arms are numbered 0 to 4")
    allowed = np.ones((TRIALS, 5), bool) if arms is None else arms
    is_allowed = allowed[np.arange(TRIALS), choices]
    require(is_allowed.all(), who, "ignores the mask: it chooses arms that may not be chosen")


def _check_probabilities(who: str, chooser: Chooser, view: View, choices: Array, draws: Array) -> None:
    """Check that probabilities are a distribution over the allowed arms, and that of the choices."""
    probs = np.broadcast_to(chooser.probabilities(view, draws), (TRIALS, 5))
    forbidden = np.zeros((TRIALS, 5), bool) if view.arms is None else view.arms == 0
    require(
        (probs >= 0).all() and same(probs.sum(-1), 1.0),
        who,
        "its probabilities do not add up to one",
    )
    require(not probs[forbidden].any(), who, "gives a probability to arms that may not be chosen")
    shares = (choices[..., None] == np.arange(5)).mean(0)
    error = SIGMAS * np.sqrt(np.maximum(probs * (1 - probs), 1 / DRAWS) / DRAWS)
    far = np.abs(shares - probs) > error
    require(not far.any(), who, f"says {chooser.propensity} probabilities with which it does not choose")
