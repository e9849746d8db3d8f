"""Setting 2, true contexts come after rewards: the bounds of Algorithm 2."""

import numpy as np
from scipy.special import polygamma

from unfog.channel.knowledge import as_told
from unfog.maths.arrays import Array
from unfog.theory import conditions, information
from unfog.theory.bounds.bound import Bound, combined, learning, made, tail
from unfog.theory.bounds.potential import escape
from unfog.theory.conditions import Case
from unfog.theory.information import DENOISERS, horizons
from unfog.validation import one_of


def lemma_3(
    case: Case,
    horizon: object,
    version: str = "corrected",
    *,
    denoiser: str = "plugin",
    strict: bool = True,
) -> Bound:
    """CB of Algorithm 2. It is proved for the exact denoiser; the plug-in adds a little.

    >>> import unfog
    >>> from unfog.theory import bounds, conditions
    >>> matrices = [[[0.5]], [[-0.5]]]  # G(a) of two arms
    >>> problem = unfog.GaussianProblem(dim=1, actions=matrices, features="matrix", prior_cov=0.01)
    >>> case = conditions.linear_case(problem.knowledge(), matrices)
    >>> found = bounds.lemma_3(case, 100)
    >>> found.name, float(found.total.round(2))
    ('lemma 3', 12.81)
    """
    one_of("denoiser", denoiser, DENOISERS)
    t = horizons(horizon)
    asked = [conditions.centred_prior(case), conditions.noisy_rewards(case), conditions.small_features(case)]
    mended = version == "corrected" and denoiser == "plugin"
    extra = case.prior_var * _distances(case, t) if mended else 0.0
    parts = {"learning": learning(case, t, case.prior_var, extra)}
    return made("lemma 3", version, t, parts, asked, strict, escape(case))


def _distances(case: Case, horizon: Array) -> Array:
    """How much E|psi_H(a_t)|^2 may exceed E|phi(a_t, c_t)|^2 with the plug-in, summed over rounds.

    Where |phi| <= 1 the total variation between the exact denoiser and the plug-in bounds a round's part: at
    most sqrt(KL_t / 2), KL_t from the first to the second. Linear features of Gaussian contexts have no such
    limit; with e_t the gap between the two means a part is at most 2 sqrt(g E|e_t|^2) + g E|e_t|^2, with
    g = E max |G(a)|^2. Both fall as 1 / (n + l), l the least eigenvalue of Sigma_gamma^-1 relative to
    Sigma_n^-1.
    """
    known = case.known
    root = np.linalg.cholesky(known.noise_cov)
    told = root.T @ np.linalg.solve(known.context_cov + known.noise_cov, root)
    least = np.linalg.eigvalsh(root.T @ np.linalg.solve(known.bias_cov, root))[0]
    first = information.harmonic(least, horizon)
    if case.linear is None:
        size = np.linalg.norm(told) * np.linalg.norm(np.eye(case.dim) - told)
        return 0.5 * np.sqrt(size) * first
    size = case.linear.norm * np.linalg.norm(told, 2) * np.linalg.norm(as_told(known).gain @ root) ** 2
    found: Array = 2 * np.sqrt(size) * first + size * (polygamma(1, least) - polygamma(1, horizon + least))
    return found


def lemma_4(
    case: Case, horizon: object, version: str = "corrected", *, delta: object = None, strict: bool = True
) -> Bound:
    """EE1 + EE2 of Algorithm 2; delta is 1/T unless told.

    The printed information is that of T - 1 rounds, where the chain rule over T rounds gives that of T.

    >>> import unfog
    >>> from unfog.theory import bounds, conditions
    >>> matrices = [[[0.5]], [[-0.5]]]  # G(a) of two arms
    >>> problem = unfog.GaussianProblem(dim=1, actions=matrices, features="matrix", prior_cov=0.01)
    >>> case = conditions.linear_case(problem.knowledge(), matrices)
    >>> found = bounds.lemma_4(case, 100)
    >>> found.name, float(found.total.round(2))
    ('lemma 4', 14.15)
    """
    t = horizons(horizon)
    cost, event = tail(case, t, version, delta, case.prior_var)
    known = information.about_bias(case.known, t - (version == "printed"))
    parts = {"tail": cost, "estimation": 2 * np.sqrt(2 * t * event * known)}
    asked = [conditions.centred_prior(case), conditions.small_features(case)]
    return made("lemma 4", version, t, parts, asked, strict)


def theorem_2(
    case: Case,
    horizon: object,
    version: str = "corrected",
    *,
    delta: object = None,
    denoiser: str = "plugin",
    strict: bool = True,
) -> Bound:
    """The regret of Algorithm 2. The printed one is for multiples of I.

    >>> import unfog
    >>> from unfog.theory import bounds, conditions
    >>> matrices = [[[0.5]], [[-0.5]]]  # G(a) of two arms
    >>> problem = unfog.GaussianProblem(dim=1, actions=matrices, features="matrix", prior_cov=0.01)
    >>> case = conditions.linear_case(problem.knowledge(), matrices)
    >>> found = bounds.theorem_2(case, 100)
    >>> found.name, float(found.total.round(2))
    ('theorem 2', 26.96)
    """
    pieces = (
        lemma_3(case, horizon, version, denoiser=denoiser, strict=False),
        lemma_4(case, horizon, version, delta=delta, strict=False),
    )
    more = [conditions.isotropic_noise(case)] if version == "printed" else []
    return combined("theorem 2", pieces, strict, more=more)
