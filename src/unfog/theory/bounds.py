"""The paper's bounds on Bayesian regret, as functions of the horizon T, printed and corrected.

With U(m, l) = sqrt(2 T m s^2 min(m, 2 + 2 ln K) ln(1 + T l / (m s^2))), s^2 the variance of rewards and l
that of theta's prior (sigma^2 and lambda in the paper), and Algorithm 1 for setting 1, where true contexts
stay hidden, Algorithm 2 for setting 2, where they come after rewards:

    lemma_1         CB of Algorithm 1         U(m, d s^2/T) and two terms for the sum of D_t, the mismatch
    lemma_2         its EE1 + EE2             any feature map
    lemma_2_linear  its EE1 + EE2             phi(a, c) = G(a) c
    theorem_1       its regret                lemma_1 + lemma_2_linear
    lemma_3         CB of Algorithm 2         U(m, l)
    lemma_4         its EE1 + EE2
    theorem_2       its regret                lemma_3 + lemma_4

`printed` is what the paper says; `corrected` is what its argument proves once its slips are corrected, and
needs no isotropic covariances: docs/science/proofs.md derives every difference. All are vectorised over T, in
closed form. A condition that does not hold is an error, or with strict=False a mark on the value. `at_random`
bounds the regret of choosing uniformly at random.

One step of the proofs can fail for unbounded features: u <= 2 ln(1 + u) in the elliptical potential. It holds
up to u = 2.51, and u is at most |x|^2 lambda / sigma^2, x being the features of the arm chosen (in setting 2)
or the agent's belief in them (in setting 1). Linear features of Gaussian contexts have no largest norm, so
that some rounds may violate it. `escape` bounds the probability of that for a round: |G(a) v| <= |G(a)| |v|,
and with Chernoff's bound

    P(|v|^2 > y) <= min_s exp(-s y) E exp(s |v|^2),      v the context, or the plug-in's mean in round 1.

The means of later rounds, and the exact denoiser's, have exponential moments no larger (Jensen's inequality).

To compare a bound with measurements, `exponent` estimates how fast something grows: the b of a power law
y = a x^b.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import polygamma

from unfog.channel.knowledge import known_shrinkage
from unfog.maths.arrays import Array
from unfog.maths.statistics import Estimate, jackknife_error
from unfog.theory import conditions, information
from unfog.theory.conditions import Case, Condition
from unfog.theory.information import DENOISERS, VERSIONS, horizons, numbers
from unfog.validation import InputError, one_of

__all__ = [
    "Bound",
    "at_random",
    "learning",
    "lemma_1",
    "lemma_2",
    "lemma_2_linear",
    "lemma_3",
    "lemma_4",
    "mismatch_sum",
    "ratio_limit",
    "theorem_1",
    "theorem_2",
]

LIMIT = 2.51  # up to which u <= 2 ln(1 + u)
_GRID = np.linspace(0, 1, 1001)[1:-1]


class Bound(NamedTuple):
    """A bound, its parts by name, and where its conditions do not hold.

    >>> import unfog
    >>> from unfog.theory import bounds, conditions
    >>> matrices = [[[0.5]], [[-0.5]]]  # G(a) of two arms
    >>> problem = unfog.GaussianProblem(dim=1, actions=matrices, features="matrix", prior_cov=0.01)
    >>> case = conditions.linear_case(problem.knowledge(), matrices)
    >>> found = bounds.theorem_2(case, [100, 1000])
    >>> found.total.round(1).tolist(), found.holds.tolist(), sorted(found.parts)
    ([27.0, 149.8], [True, True], ['estimation', 'learning', 'tail'])
    """

    name: str
    version: str
    horizon: Array
    parts: dict[str, Array]  # each of the horizon's shape
    broken: tuple[Condition, ...]
    escape: float = 0.0  # caveat: how likely a round is beyond the elliptical potential, by `escape`

    @property
    def total(self) -> Array:
        """The bound: the sum of its parts."""
        return np.asarray(sum(self.parts.values()))

    @property
    def holds(self) -> Array:
        """At which horizons every condition holds."""
        fine = np.ones(self.horizon.shape, bool)
        for condition in self.broken:
            fine = fine & condition.holds
        return fine


def make_bound(
    name: str,
    version: str,
    horizon: Array,
    parts: Mapping[str, Array],
    required: Sequence[Condition],
    strict: bool,
    escape: float = 0.0,
) -> Bound:
    """Make a bound; raise InputError if it is strict and a condition does not hold."""
    one_of("version", version, VERSIONS)
    broken = tuple(condition for condition in required if not condition.holds.all())
    if strict and broken:
        first = broken[0]
        raise InputError(f"{name}, {version}", f"does not apply: {first.actual}", first.asks)
    shaped = {part: np.broadcast_to(value, horizon.shape) for part, value in parts.items()}
    return Bound(name, version, horizon, shaped, broken, escape)


def combine_bounds(
    name: str,
    pieces: Sequence[Bound],
    strict: bool,
    changed: Mapping[str, Array] | None = None,
    more: Sequence[Condition] = (),
) -> Bound:
    """The sum of bounds with their parts and conditions; `changed` replaces parts, `more` adds conditions."""
    parts = {part: value for piece in pieces for part, value in piece.parts.items()} | dict(changed or {})
    required = {condition.asks: condition for piece in pieces for condition in piece.broken}
    first, escape = pieces[0], max(piece.escape for piece in pieces)
    return make_bound(name, first.version, first.horizon, parts, [*required.values(), *more], strict, escape)


def like_horizons(field: str, value: object, horizon: Array, allowed: str) -> Array:
    """Numbers in the shape of the horizons: one for all, or one for each."""
    array, asks = numbers(value), f"{allowed}; one for all horizons, or of their shape {horizon.shape}"
    if array is None or array.ndim > horizon.ndim:
        raise InputError(field, repr(value)[:80], asks)
    try:
        return np.broadcast_to(array, horizon.shape)
    except ValueError:
        raise InputError(field, f"shape {array.shape}", asks) from None


def ratio_limit(size: int, arms: int) -> float:
    """min(m, 2 + 2 ln K): what the lifted information ratio cannot exceed.

    >>> from unfog.theory import bounds
    >>> bounds.ratio_limit(3, arms=20), round(bounds.ratio_limit(30, arms=20), 2)
    (3.0, 7.99)
    """
    return min(float(size), 2 + 2 * float(np.log(arms)))


def learning(case: Case, horizon: Array, prior_var: Array | float, extra: Array | float = 0.0) -> Array:
    """U(m, l); `extra` is added to the sum of the variances of scores, 2 m s^2 ln(1 + T l / (m s^2)).

    >>> import numpy as np
    >>> import unfog
    >>> from unfog.theory import bounds, conditions
    >>> matrices = [[[0.5]], [[-0.5]]]  # G(a) of two arms
    >>> problem = unfog.GaussianProblem(dim=1, actions=matrices, features="matrix", prior_cov=0.01)
    >>> case = conditions.linear_case(problem.knowledge(), matrices)
    >>> bounds.learning(case, np.array([100.0, 400.0]), case.prior_var).round(2).tolist()
    [12.74, 41.93]
    """
    m, noise = case.size, case.reward_var
    variances = 2 * m * noise * np.log1p(horizon * prior_var / (m * noise)) + extra
    return np.sqrt(horizon * ratio_limit(m, case.arms) * variances)


def tail(
    case: Case, horizon: Array, version: str, delta: object, prior_var: Array | float
) -> tuple[Array, Array]:
    """What a theta* outside |theta*|^2 <= u^2 may cost, and u^2 = 2 m l ln(2 m / delta).

    Outside, with probability delta at most, |theta*| adds up to delta sqrt(m l / 2 pi). The paper has another
    delta there: it took the mean over the event for the mean given the event.
    """
    allowed = "a number between 0 and 1, both excluded"
    raw = 1 / np.maximum(horizon, 2) if delta is None else delta
    small = like_horizons("delta", raw, horizon, allowed)
    if not ((small > 0) & (small < 1)).all():
        raise InputError("delta", repr(delta)[:80], allowed)
    power = 2 if version == "printed" else 1
    cost = 4 * horizon * small**power * np.sqrt(case.size * prior_var / (2 * np.pi))
    return cost, 2 * case.size * prior_var * np.log(2 * case.size / small)


def at_random(case: Case, horizon: object, *, strict: bool = True) -> Bound:
    """The regret of choosing uniformly at random: T E max_a psi(a)'theta* <= T sqrt(2 l ln K).

    >>> import unfog
    >>> from unfog.theory import bounds, conditions
    >>> matrices = [[[0.5]], [[-0.5]]]  # G(a) of two arms
    >>> problem = unfog.GaussianProblem(dim=1, actions=matrices, features="matrix", prior_cov=0.01)
    >>> case = conditions.linear_case(problem.knowledge(), matrices)
    >>> bounds.at_random(case, [100, 200]).total.round(2).tolist()
    [11.77, 23.55]
    """
    t = horizons(horizon)
    required = [conditions.centred_prior(case), conditions.small_features(case)]
    value = t * np.sqrt(2 * case.prior_var * np.log(case.arms))
    return make_bound("at random", "corrected", t, {"regret": value}, required, strict)


def escape(case: Case) -> float:
    """A bound on the probability that a round's features are too large; 1 where none is known."""
    ratio = case.prior_var / case.reward_var
    if case.linear is None:
        return 0.0 if case.bounded and case.feature_norm**2 * ratio <= LIMIT else 1.0
    if not case.linear.largest:
        return 0.0
    known, gain = case.known, known_shrinkage(case.known).gain
    believed = gain @ (known.context_cov + known.noise_cov + known.bias_cov) @ gain.T
    least = LIMIT / (ratio * case.linear.largest)
    return max(chernoff_tail(known.context_mean, cov, least) for cov in (known.context_cov, believed))


def chernoff_tail(mean: Array, cov: Array, least: float) -> float:
    """Chernoff's bound on P(|v|^2 > least) for v ~ N(mean, cov)."""
    spreads, axes = np.linalg.eigh(cov)
    tilt = _GRID[:, None] / (2 * spreads[-1])
    remaining = 1 - 2 * tilt * spreads
    logs = (tilt * (axes.T @ mean) ** 2 / remaining - 0.5 * np.log(remaining)).sum(-1) - tilt[:, 0] * least
    return float(np.exp(min(logs.min(), 0)))


def _narrow_case(case: Case, horizon: Array) -> list[Condition]:
    """The conditions of all bounds of setting 1."""
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
    t, required = horizons(horizon), _narrow_case(case, horizons(horizon))
    if mismatch is None:
        required += [conditions.linear_features(case), conditions.square_features(case)]
    summed = mismatch_sum(case, t, version) if mismatch is None else _divergences(mismatch, t)
    most = 2 * case.dim * case.reward_var
    parts = {
        "learning": learning(case, t, case.dim * case.reward_var / t),
        "mismatch": np.sqrt(most * summed),
        "mismatch of the best": np.sqrt(most * (t * np.log(case.arms) + summed)),
    }
    return make_bound("lemma 1", version, t, parts, required, strict, escape(case))


def _divergences(mismatch: object, horizon: Array) -> Array:
    """The sum of D_t that the caller gives, checked."""
    allowed = "zero or a positive number"
    sums = like_horizons("mismatch", mismatch, horizon, allowed)
    if (sums < 0).any():
        raise InputError("mismatch", repr(mismatch)[:80], allowed)
    return sums


def lemma_2(
    case: Case,
    horizon: object,
    version: str = "corrected",
    *,
    delta: object = None,
    denoiser: str = "plugin",
    strict: bool = True,
) -> Bound:
    """EE1 + EE2 of Algorithm 1, any feature map; delta defaults to 1/T.

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
    return make_bound("lemma 2", version, t, parts, _narrow_case(case, t), strict)


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
    required = [*_narrow_case(case, t), conditions.linear_features(case), conditions.square_features(case)]
    if version == "printed":
        required.append(conditions.isotropic(case))
        value = _printed_estimation(case, t, 1.0)
    else:
        known = information.total(case.known, t, "unobserved", denoiser)
        value = 2 * np.sqrt(2 * _spread_sum(case, t) * known)
    return make_bound("lemma 2, linear", version, t, {"estimation": value}, required, strict)


def _printed_estimation(case: Case, horizon: Array, factor: float) -> Array:
    """2 sqrt(2 L I) with the paper's L and I; its Theorem 1 has I twice as large."""
    known, d = case.known, case.dim
    context, noise, bias = (float(c[0, 0]) for c in (known.context_cov, known.noise_cov, known.bias_cov))
    trace = 0.0 if case.linear is None else case.linear.trace
    both, log = context + noise, information.log_sum(horizon, "printed")
    scale = d * case.arms * case.reward_var * context / both * trace
    spread = scale * (noise + context * bias / (horizon * both) + context * log / horizon)
    nats = factor * information.isotropic(d, context, noise, bias, horizon, "printed")
    return 2 * np.sqrt(2 * spread * nats)


def _spread_sum(case: Case, horizon: Array) -> Array:
    """sum_t E max_a theta'G(a) R_t^-1 G(a)'theta, bounded by the sum over arms, with lambda = d s^2 / T.

    R_t^-1 = M^-1 + B S B', and S = W diag(1 / (n + l_i)) W' in the coordinates W'F W = I.
    """
    known = case.known
    gram = np.zeros_like(known.context_cov) if case.linear is None else case.linear.gram
    _, gain, cov = known_shrinkage(known)
    root = np.linalg.cholesky(known.context_cov + known.noise_cov)
    prior, vectors = np.linalg.eigh(root.T @ np.linalg.solve(known.bias_cov, root))
    rotated = gain @ root @ vectors
    weights = (rotated * (gram @ rotated)).sum(0)
    certain = np.trace(gram @ cov)
    uncertain = (weights * information.harmonic(prior, horizon[..., None])).sum(-1)
    return case.dim * case.reward_var * (certain + uncertain / horizon)


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
    if case.linear is None:  # the linear lemma does not apply, but the general one is defined
        second = lemma_2(case, t, version, denoiser=denoiser, strict=False)
        return combine_bounds("theorem 1", [first, second], strict)
    second = lemma_2_linear(case, t, version, denoiser=denoiser, strict=False)
    twice = {"estimation": _printed_estimation(case, t, 2.0)} if version == "printed" else None
    return combine_bounds("theorem 1", [first, second], strict, twice)


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
    required = [
        conditions.centred_prior(case),
        conditions.noisy_rewards(case),
        conditions.small_features(case),
    ]
    mended = version == "corrected" and denoiser == "plugin"
    extra = case.prior_var * _distances(case, t) if mended else 0.0
    parts = {"learning": learning(case, t, case.prior_var, extra)}
    return make_bound("lemma 3", version, t, parts, required, strict, escape(case))


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
    share = root.T @ np.linalg.solve(known.context_cov + known.noise_cov, root)
    least = np.linalg.eigvalsh(root.T @ np.linalg.solve(known.bias_cov, root))[0]
    first = information.harmonic(least, horizon)
    if case.linear is None:
        size = np.linalg.norm(share) * np.linalg.norm(np.eye(case.dim) - share)
        return 0.5 * np.sqrt(size) * first
    size = (
        case.linear.norm * np.linalg.norm(share, 2) * np.linalg.norm(known_shrinkage(known).gain @ root) ** 2
    )
    total: Array = 2 * np.sqrt(size) * first + size * (polygamma(1, least) - polygamma(1, horizon + least))
    return total


def lemma_4(
    case: Case, horizon: object, version: str = "corrected", *, delta: object = None, strict: bool = True
) -> Bound:
    """EE1 + EE2 of Algorithm 2; delta defaults to 1/T.

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
    required = [conditions.centred_prior(case), conditions.small_features(case)]
    return make_bound("lemma 4", version, t, parts, required, strict)


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
    return combine_bounds("theorem 2", pieces, strict, more=more)


def slope(points: Array, values: Array) -> Array:
    """The slope of ln y over ln x: points (n,), values (..., n) -> (...,)."""
    centred = np.log(points) - np.log(points).mean()
    slopes: Array = np.log(values) @ centred / (centred @ centred)
    return slopes


def exponent(points: Array, values: Array) -> Estimate:
    """The exponent b of y = a x^b, with its standard error, from values (trials, n) at points (n,).

    b is the slope of ln(mean y) over ln x by least squares. The mean is over trials, each of which has a
    value at every x; the error is the jackknife's, which leaves one trial out at a time, so that it need not
    matter how the values of a trial depend on each other. B. Efron and C. Stein, *The Jackknife Estimate of
    Variance*.

    The error is NaN for one trial alone, and where leaving one trial out leaves a mean that has no logarithm.
    """
    x = np.asarray(points, dtype=np.float64)
    trials, mean = len(values), values.mean(0)
    if len(np.unique(x)) < 2 or (x <= 0).any():
        raise InputError("points", x.tolist(), "two or more different numbers above zero")
    if (mean <= 0).any():
        raise InputError("values", f"a mean of {mean.min():.3g}", "means above zero")
    estimate = float(slope(x, mean))
    others = (mean * trials - values) / max(trials - 1, 1)
    if trials == 1 or (others <= 0).any():
        return Estimate(estimate, float("nan"))
    return Estimate(estimate, jackknife_error(slope(x, others)))
