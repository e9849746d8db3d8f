"""The contract of denoisers: `check_denoiser` tests any denoiser against it."""

from typing import Any

import numpy as np

from unfog.agents.base import (
    Corrects,
    Denoiser,
    HasCandidates,
    KnowsBias,
    Moment,
    PredictsReading,
    Privilege,
    Rewinds,
    ScalesContexts,
    SeesBias,
    UsesTime,
)
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths.arrays import Array
from unfog.maths.mixture import Mixture
from unfog.testing.common import (
    ROUNDS,
    TRIALS,
    ContractError,
    arrays,
    check_value,
    floats,
    normals,
    problem,
    require,
    same,
    writes_nothing,
)

LAWS: dict[str, Any] = {  # of contexts, for denoisers that need one
    "contexts": normals("sample", 7, 2),
    "sample": normals("sample", 7, 2),
    "mixture": Mixture(
        np.array([0.3, 0.7]), normals("means", 2, 2), np.array([np.eye(2), np.diag([0.5, 0.0])])
    ),
}


class _Trap:
    """A privilege that raises if anything of it is read."""

    def __init__(self, who: str) -> None:
        self.__dict__["who"] = who

    def __getattr__(self, name: str) -> Any:
        raise ContractError(f"{self.who}: reads {name!r} of the privilege, and does not declare SeesBias")


def check_denoiser(denoiser: Denoiser) -> None:
    """Raise ContractError, with the name of the denoiser and the rule, if it breaks one.

    >>> import unfog
    >>> unfog.testing.check_denoiser(unfog.denoise.Drift(step=0.01))  # says nothing where all is well
    """
    who = check_value("denoiser", denoiser)
    known = problem().knowledge()
    known = known._replace(**{field: LAWS[field] for field in denoiser.needs_knowledge})
    noisy, contexts = (normals(name, ROUNDS, TRIALS, 2) for name in ("noisy", "contexts"))
    _check_privilege(who, denoiser, known)
    beliefs = _play(who, denoiser, known, noisy, contexts)
    for trial in range(TRIALS):
        alone = _play(who, denoiser, known, noisy[:, [trial]], contexts[:, [trial]])
        for one, other in zip(beliefs, alone, strict=True):
            fits = same(one.mean[trial], other.mean[0]) and same(_cov_of(one, trial), _cov_of(other, 0))
            require(fits, who, "a trial's belief depends on the trials beside it")
    if denoiser.takes_gaps:
        _check_gaps(who, denoiser, known, noisy)
    if isinstance(denoiser, Corrects):
        _check_corrects(who, denoiser, denoiser, known, noisy, contexts)
    if isinstance(denoiser, Rewinds) and isinstance(denoiser, KnowsBias) and not denoiser.sees_context:
        _check_rewinds(who, denoiser, denoiser, known, noisy[0])


def _setup(denoiser: Denoiser, known: Knowledge) -> Any:
    privilege = Privilege(np.array([0.3, -0.2])) if isinstance(denoiser, SeesBias) else None
    return denoiser.setup(known, privilege)


def _check_privilege(who: str, denoiser: Denoiser, known: Knowledge) -> None:
    """Check that only denoisers that declare SeesBias read the truth, and that these use it."""
    if not isinstance(denoiser, SeesBias):
        trap: Any = _Trap(who)
        denoiser.setup(known, trap)
        return
    first, second = (denoiser.with_bias(_setup(denoiser, known), np.full(2, x)) for x in (0.0, 1.0))
    means = [denoiser.predict(p, denoiser.start(p), np.ones((1, 2))).mean for p in (first, second)]
    require(not same(*means), who, "declares SeesBias and makes nothing of the bias it is told")


def _play(who: str, denoiser: Denoiser, known: Knowledge, noisy: Array, contexts: Array) -> list[Context]:
    """Its beliefs, round by round; each is checked."""
    parameters = _setup(denoiser, known)
    list(arrays(who, parameters))
    state, beliefs = denoiser.start(parameters), []
    shape = _structure(who, state)
    for reading, context in zip(noisy, contexts, strict=True):
        belief = writes_nothing(who, denoiser.predict, parameters, state, reading)
        _check_belief(who, denoiser, belief, reading)
        beliefs.append(belief)
        revealed = context if denoiser.sees_context else None
        state = writes_nothing(who, denoiser.update, parameters, state, reading, revealed)
        require(_structure(who, state) == shape, who, "a round changes the structure of its state")
    return beliefs


def _structure(who: str, state: Any) -> Any:
    """The nested types of tuples in a state."""
    if isinstance(state, tuple):
        return type(state), [_structure(who, part) for part in state]
    floats(who, state)
    return None


def _check_belief(who: str, denoiser: Denoiser, belief: Context, noisy: Array) -> None:
    candidates = [len(denoiser.candidates)] if isinstance(denoiser, HasCandidates) else []
    mean, cov = np.asarray(belief.mean), np.asarray(belief.cov)
    shape, d = (*noisy.shape[:-1], *candidates, noisy.shape[-1]), noisy.shape[-1]
    require(mean.shape == shape, who, f"the mean has shape {mean.shape}, not {shape}")
    fits = cov.shape in ((d, d), (*mean.shape, d))
    require(fits, who, f"the covariance has shape {cov.shape}, not {(d, d)} or {(*noisy.shape, d)}")
    require(np.isfinite(mean).all() and np.isfinite(cov).all(), who, "its belief is not finite")
    require(same(cov, cov.mT), who, "its covariance is not symmetric")
    require(np.linalg.eigvalsh(cov).min() > -1e-9, who, "its covariance has a negative eigenvalue")


def _cov_of(belief: Context, trial: int) -> Array:
    return belief.cov if belief.cov.ndim == 2 else belief.cov[trial]


def _check_gaps(who: str, denoiser: Denoiser, known: Knowledge, noisy: Array) -> None:
    """Check that a context that is lost entirely leaves the belief at the prior, and nothing is learnt."""
    parameters = _setup(denoiser, known)
    state = denoiser.start(parameters)
    blank = np.full_like(noisy[0], np.nan)
    belief = denoiser.predict(parameters, state, blank)
    _check_belief(who, denoiser, belief, blank)
    if not denoiser.needs_moments or _ignores_prior(denoiser, known, noisy):
        _check_same_after_gap(who, denoiser, parameters, blank, noisy)
        return
    is_prior = same(belief.mean, known.context_mean) and same(belief.cov, known.context_cov)
    require(is_prior, who, "takes gaps, and makes something of a context that was lost as a whole")
    after = denoiser.update(parameters, state, blank, None)
    pairs = zip(arrays(who, state), arrays(who, after), strict=True)
    learns = not all(same(*pair) for pair in pairs) and not _lets_time_pass(
        denoiser, parameters, state, after
    )
    require(not learns, who, "takes gaps, and learns from what was lost")


def _ignores_prior(denoiser: Denoiser, known: Knowledge, noisy: Array) -> bool:
    """Whether it uses only readings, so that its belief after a gap cannot be the prior."""
    other = known._replace(context_mean=known.context_mean + 1, context_cov=2 * known.context_cov)
    gap, means = np.where([True, False], np.nan, noisy), []
    for prior in (known, other):
        parameters = _setup(denoiser, prior)
        state = denoiser.start(parameters)
        for reading in (np.full_like(noisy[0], np.nan), *gap):
            means.append(denoiser.predict(parameters, state, reading).mean)
            state = denoiser.update(parameters, state, reading, None)
    half = len(means) // 2
    return all(same(one, two) for one, two in zip(means[:half], means[half:], strict=True))


def _check_same_after_gap(who: str, denoiser: Denoiser, parameters: Any, blank: Array, noisy: Array) -> None:
    """Check that a gap leaves the belief from a complete reading as it is; only its rate may be learnt."""
    state = denoiser.start(parameters)
    for reading in noisy:
        after = denoiser.update(parameters, state, blank, None)
        one, two = (denoiser.predict(parameters, before, reading) for before in (state, after))
        fits = same(one.mean, two.mean) and same(one.cov, two.cov)
        require(fits, who, "takes gaps, and learns from what was lost")
        state = denoiser.update(parameters, state, reading, None)


def _lets_time_pass(denoiser: Denoiser, parameters: Any, before: Any, after: Any) -> bool:
    """Whether only the variance of the next reading has grown: the bias may have drifted meanwhile."""
    if not isinstance(denoiser, PredictsReading):
        return False
    (centre, spread), (now, wider) = (
        denoiser.predict_reading(parameters, state) for state in (before, after)
    )
    return same(centre, now) and bool((wider >= spread).all())


def _check_corrects(
    who: str, denoiser: Denoiser, able: Corrects, known: Knowledge, noisy: Array, contexts: Array
) -> None:
    """Check that late true contexts give the same state in any order."""
    parameters = _setup(denoiser, known)
    state = denoiser.start(parameters)
    moments = list[Moment]()
    for reading in noisy:
        if isinstance(denoiser, UsesTime):
            moments.append(denoiser.stamp(state, Moment()))
        state = denoiser.update(parameters, state, reading, None)
    ends, hidden = [], np.full_like(noisy[0], np.nan)
    for order in (range(ROUNDS), reversed(range(ROUNDS))):
        now = state
        for t in order:
            args = parameters, now, noisy[t], hidden, contexts[t]
            if isinstance(denoiser, UsesTime):
                now, belief = denoiser.reopen(*args, moments[t])
            else:
                now, belief = able.correct(*args)
            believed = belief.mean
            if isinstance(denoiser, ScalesContexts):
                believed = believed - denoiser.mean_error(parameters, now)[..., None, :]
            right = contexts[t] if believed.ndim == 2 else contexts[t][:, None]
            is_believed = same(believed, np.broadcast_to(right, believed.shape))
            require(is_believed, who, "does not believe a true context it was shown")
        ends.append(list(arrays(who, now)))
    agree = all(np.allclose(one, other, rtol=1e-8, atol=1e-8) for one, other in zip(*ends, strict=True))
    require(agree, who, "true contexts that come late give another state in another order")


def _check_rewinds(who: str, denoiser: Denoiser, able: Rewinds, known: Knowledge, noisy: Array) -> None:
    parameters = _setup(denoiser, known)
    hindsight = able.hindsight(parameters, denoiser.start(parameters), noisy)
    gain, bias = hindsight.shrinkage.gain, hindsight.mean
    belief = denoiser.predict(parameters, denoiser.start(parameters), noisy)
    mean = able.unbiased(parameters, noisy) - (gain @ bias[..., None])[..., 0]
    require(same(mean, belief.mean), who, "rewinds to another belief than it has now")
