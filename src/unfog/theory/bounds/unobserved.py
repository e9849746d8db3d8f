"""Setting 1, the true contexts stay hidden: the bounds of Algorithm 1."""

import numpy as np

from unfog.channel.knowledge import as_told
from unfog.maths.arrays import Array
from unfog.theory import conditions, information
from unfog.theory.bounds.bound import Bound, combined, learning, like_horizons, made, ratio_limit, tail
from unfog.theory.bounds.potential import escape
from unfog.theory.conditions import Case, Condition
from unfog.theory.information import DENOISERS, VERSIONS, horizons
from unfog.validation import InputError, one_of


def _narrow_case(case: Case, horizon: Array) -> list[Condition]:
    """What all bounds of setting 1 ask."""
    c = conditions
    return [c.centred_prior(case), c.narrow(case, horizon), c.long(case, horizon), c.small_features(case)]


def mismatch_sum(case: Case, horizon: object, version: str = "corrected") -> Array:
    """The bound on sum D_t for phi = G(a) c: d T / 4.

    That takes the actions to be independent of theta*; that they are not costs the factor min(d, 2 + 2 ln K).

    >>> import unfog
    >>> from unfog.theory import bounds, conditions
    >>> matrices = [[[0.5]], [[-0.5]]]  # G(a) of two arms
    >>> problem = unfog.GaussianProblem(dim=1, actions=matrices, features="matrix", prior_cov=0.01)
    >>> case = conditions.linear_case(problem.knowledge(), matrices)
    >>> float(bounds.mismatch_sum(case, 100, "printed"))
    25.0
    """
    one_of("version", version, VERSIONS)
    factor = 1.0 if version == "printed" else ratio_limit(case.dim, case.arms)
    return factor * case.dim * horizons(horizon) / 4


def lemma_1(
    case: Case,
    horizon: object,
    version: str = "corrected",
    *,
    mismatch: object = None,
    strict: bool = True,
) -> Bound:
    """CB of Algorithm 1. `mismatch` is sum D_t where it is known; else features must be linear.

    >>> import unfog
    >>> from unfog.theory import bounds, conditions
    >>> matrices = [[[0.5]], [[-0.5]]]  # G(a) of two arms
    >>> problem = unfog.GaussianProblem(dim=1, actions=matrices, features="matrix", prior_cov=0.01)
    >>> case = conditions.linear_case(problem.knowledge(), matrices)
    >>> found = bounds.lemma_1(case, 100)
    >>> found.name, float(found.total.round(2))
    ('lemma 1', 46.07)
    """
    t, asked = horizons(horizon), _narrow_case(case, horizons(horizon))
    if mismatch is None:
        asked += [conditions.linear_features(case), conditions.square_features(case)]
    summed = mismatch_sum(case, t, version) if mismatch is None else _divergences(mismatch, t)
    most = 2 * case.dim * case.reward_var
    parts = {
        "learning": learning(case, t, case.dim * case.reward_var / t),
        "mismatch": np.sqrt(most * summed),
        "mismatch of the best": np.sqrt(most * (t * np.log(case.arms) + summed)),
    }
    return made("lemma 1", version, t, parts, asked, strict, escape(case))


def _divergences(mismatch: object, horizon: Array) -> Array:
    """The sum of D_t, as it was told."""
    allowed = "zero or a positive number"
    found = like_horizons("mismatch", mismatch, horizon, allowed)
    if (found < 0).any():
        raise InputError("mismatch", repr(mismatch)[:80], allowed)
    return found


def lemma_2(
    case: Case,
    horizon: object,
    version: str = "corrected",
    *,
    delta: object = None,
    denoiser: str = "plugin",
    strict: bool = True,
) -> Bound:
    """EE1 + EE2 of Algorithm 1, any feature map; delta is 1/T unless told.

    >>> import unfog
    >>> from unfog.theory import bounds, conditions
    >>> matrices = [[[0.5]], [[-0.5]]]  # G(a) of two arms
    >>> problem = unfog.GaussianProblem(dim=1, actions=matrices, features="matrix", prior_cov=0.01)
    >>> case = conditions.linear_case(problem.knowledge(), matrices)
    >>> found = bounds.lemma_2(case, 100)
    >>> found.name, float(found.total.round(2))
    ('lemma 2', 17.78)
    """
    t = horizons(horizon)
    cost, event = tail(case, t, version, delta, case.dim * case.reward_var / t)
    known = information.total(case.known, t, "unobserved", denoiser)
    parts = {"tail": cost, "estimation": 2 * np.sqrt(2 * t * event * known)}
    return made("lemma 2", version, t, parts, _narrow_case(case, t), strict)


def lemma_2_linear(
    case: Case,
    horizon: object,
    version: str = "corrected",
    *,
    denoiser: str = "plugin",
    strict: bool = True,
) -> Bound:
    """EE1 + EE2 of Algorithm 1 for phi = G(a) c.

    >>> import unfog
    >>> from unfog.theory import bounds, conditions
    >>> matrices = [[[0.5]], [[-0.5]]]  # G(a) of two arms
    >>> problem = unfog.GaussianProblem(dim=1, actions=matrices, features="matrix", prior_cov=0.01)
    >>> case = conditions.linear_case(problem.knowledge(), matrices)
    >>> found = bounds.lemma_2_linear(case, 100)
    >>> found.name, float(found.total.round(2))
    ('lemma 2, linear', 2.81)
    """
    one_of("denoiser", denoiser, DENOISERS)
    t = horizons(horizon)
    asked = [*_narrow_case(case, t), conditions.linear_features(case), conditions.square_features(case)]
    if version == "printed":
        asked.append(conditions.isotropic(case))
        value = _printed_estimation(case, t, 1.0)
    else:
        known = information.total(case.known, t, "unobserved", denoiser)
        value = 2 * np.sqrt(2 * _spread_sum(case, t) * known)
    return made("lemma 2, linear", version, t, {"estimation": value}, asked, strict)


def _printed_estimation(case: Case, horizon: Array, factor: float) -> Array:
    """2 sqrt(2 L I) with the paper's L and I; its Theorem 1 has I twice as large."""
    known, d = case.known, case.dim
    context, noise, bias = (float(c[0, 0]) for c in (known.context_cov, known.noise_cov, known.bias_cov))
    trace = 0.0 if case.linear is None else case.linear.trace
    both, log = context + noise, information.log_sum(horizon, "printed")
    scale = d * case.arms * case.reward_var * context / both * trace
    spread = scale * (noise + context * bias / (horizon * both) + context * log / horizon)
    told = factor * information.isotropic(d, context, noise, bias, horizon, "printed")
    return 2 * np.sqrt(2 * spread * told)


def _spread_sum(case: Case, horizon: Array) -> Array:
    """sum_t E max_a theta'G(a) R_t^-1 G(a)'theta, bounded by the sum over arms, with lambda = d s^2 / T.

    R_t^-1 = M^-1 + B S B', and S = W diag(1 / (n + l_i)) W' in the coordinates W'F W = I.
    """
    known = case.known
    gram = np.zeros_like(known.context_cov) if case.linear is None else case.linear.gram
    _, gain, left = as_told(known)
    root = np.linalg.cholesky(known.context_cov + known.noise_cov)
    prior, vectors = np.linalg.eigh(root.T @ np.linalg.solve(known.bias_cov, root))
    turned = gain @ root @ vectors
    weights = (turned * (gram @ turned)).sum(0)
    certain = np.trace(gram @ left)
    learnt = (weights * information.harmonic(prior, horizon[..., None])).sum(-1)
    return case.dim * case.reward_var * (certain + learnt / horizon)


def theorem_1(
    case: Case,
    horizon: object,
    version: str = "corrected",
    *,
    mismatch: object = None,
    denoiser: str = "plugin",
    strict: bool = True,
) -> Bound:
    """The regret of Algorithm 1 for phi = G(a) c.

    >>> import unfog
    >>> from unfog.theory import bounds, conditions
    >>> matrices = [[[0.5]], [[-0.5]]]  # G(a) of two arms
    >>> problem = unfog.GaussianProblem(dim=1, actions=matrices, features="matrix", prior_cov=0.01)
    >>> case = conditions.linear_case(problem.knowledge(), matrices)
    >>> found = bounds.theorem_1(case, 100)
    >>> found.name, float(found.total.round(2))
    ('theorem 1', 48.89)
    """
    t = horizons(horizon)
    first = lemma_1(case, t, version, mismatch=mismatch, strict=False)
    if case.linear is None:  # it does not apply then; the general lemma has at least a meaning
        second = lemma_2(case, t, version, denoiser=denoiser, strict=False)
        return combined("theorem 1", [first, second], strict)
    second = lemma_2_linear(case, t, version, denoiser=denoiser, strict=False)
    twice = {"estimation": _printed_estimation(case, t, 2.0)} if version == "printed" else None
    return combined("theorem 1", [first, second], strict, twice)
