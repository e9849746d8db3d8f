"""Calibration of a channel from pairs of noisy and true contexts: chat = c + gamma + n, as in `Knowledge`.

With errors e = noisy - true, and groups g (weeks, devices, sites) each with a bias of its own,

    Sigma_n     = sum_g sum_i (e_gi - mean_g)(e_gi - mean_g)' / (n - G)
    bias        = the mean over groups of mean_g
    Sigma_gamma = sum_g (mean_g - bias)(mean_g - bias)' / (G - 1) - Sigma_n * mean(1 / n_g)

the random-effects estimator by moments (S. R. Searle, G. Casella, C. E. McCulloch, *Variance Components*),
unbiased for any sizes n_g. mu_c and Sigma_c are the sample moments of the true contexts.

A calibration is printed with the standard error of each number, coordinate by coordinate. Variances are shown
as standard deviations, in the units of the readings; the error of s = sqrt(v) is that of v over 2 s. A number
without an error was not estimated by the study: it was given by the caller, or assumed to be zero. A
coordinate whose readings all equal the truth is exact: its noise and its bias are 0.

Pairs also show whether errors depend on the truth. A channel reads c + bias + n with n independent of c. A
sensor with a gain reads 0.5 c + n, and so does one that drags readings towards their mean: its error
is -0.5 c + n and falls with c. So `dependence` regresses errors on true contexts,

    e = B c + rest,    B_jk the error of coordinate j for a deviation more of coordinate k,

after subtracting group means from both. If some B_jk is more than `FAR` standard errors from zero, a note
says so. The largest of several standard errors counts. One is HC3, which holds if errors spread differently
at different contexts (J. S. Long and L. H. Ervin, *Using Heteroscedasticity Consistent Standard Errors in the
Linear Regression Model*). The others are from sums over blocks of consecutive rows, since rows in the order
of time are correlated. They help but do not cure: with 300 pairs that keep 0.9 of their distance from the
mean from row to row, one good sensor in 20 gets the note. So the note mentions it.

Sensors often read in units of their own. Then `affine` comes first: it regresses readings on true contexts,
raw = gain c + offset + e, the direction in which the error is the sensor's, and turns the line around. The
opposite regression shrinks readings towards the mean, which is the denoiser's task, and would do it twice.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from unfog.channel import moments
from unfog.channel.channel import Channel
from unfog.channel.dynamics import Dynamics
from unfog.channel.fit_dynamics import Constant, Timing, check_periods
from unfog.channel.fit_dynamics_sparse import Covs, Study, fit_time_constants
from unfog.channel.moments import PAIRS, UNTOLD, Design, Errors, between_covariance
from unfog.maths.arrays import Array, Ints
from unfog.maths.statistics import standard_error
from unfog.validation import InputError, check_keywords

FAR = 4.0  # standard errors; three coordinates that are right: 0.5 % of studies of 30 pairs, 0.1 % of 300
FEW = 10  # pairs per coordinate that the check needs
BLOCKS = 5, 10, 20  # numbers of blocks: fewer are longer, for longer correlations
TIME = "(Pairs that stay alike for long can look so by chance.)"
UNUSED = "and are not used"
BY_SUBSET = ': design="subset" uses them'
FOR_TIME = "and are used for the constants of time alone"


@check_keywords
class Calibration(NamedTuple):
    """The channel, and the law of the contexts."""

    context_mean: Array  # (d,)    mu_c
    context_cov: Array  # (d, d)  Sigma_c
    bias: Array  # (d,)    mean error, to be subtracted from noisy contexts: priors of a bias are centred
    noise_cov: Array  # (d, d)  Sigma_n
    bias_cov: Array  # (d, d)  Sigma_gamma
    pairs: int  # used; 0 where the study has none
    contexts: Array | None  # (n, d)  true contexts, where they are a fair sample of all: their law as it is
    timing: Timing | None = None  # constants of time, where times are given, and checks of them
    errors: Errors = UNTOLD  # standard errors of the first four
    design: Design = Design()  # which study, what it assumed, what it cannot know

    def __str__(self) -> str:
        return f"{statement(*self[:4], self.errors)}\n{self.design}"

    @property
    def channel(self) -> Channel:
        """All of it that a live problem wants to know."""
        laws = self.context_mean, self.context_cov, self.noise_cov, self.bias_cov
        return Channel(*laws, self.bias, sample=self.contexts, dynamics=self.dynamics)

    def same_device(self) -> Self:
        """The same for the very device of the study, soon after it: its bias is known to its standard error.

        A study of one device cannot say how far off another is, or the same one in a year: `bias_cov` allows
        for a bias as large as the one found. Here it has the squared standard errors alone.
        """
        error = np.broadcast_to(self.errors.bias, self.bias.shape)
        if self.pairs == 0 or not np.isfinite(error).all():
            raise InputError("same_device", f"{self.design.name} tell no bias", "a study that has pairs")
        return self._replace(bias_cov=np.diag(error**2))

    @property
    def dynamics(self) -> Dynamics | None:
        """How contexts and errors move in time; None without times."""
        return None if self.timing is None else self.timing.dynamics

    @property
    def constants(self) -> dict[str, Constant] | None:
        """The numbers of that, with standard errors and limits; None without times."""
        return None if self.timing is None else self.timing.constants


@check_keywords
class Affine(NamedTuple):
    """Sensor readings as lines of the true contexts, coordinate by coordinate.

    >>> import numpy as np
    >>> from unfog.channel.calibration import Affine
    >>> line = Affine(gain=np.array([2.0]), offset=np.array([1.0]))
    >>> line.contexts(np.array([[1.0], [5.0]])).tolist()
    [[0.0], [2.0]]
    """

    gain: Array  # (d,)
    offset: Array  # (d,)

    def contexts(self, raw: Array) -> Array:
        """Readings (..., d) in the units of the contexts."""
        return (raw - self.offset) / self.gain


def statement(context_mean: Array, context_cov: Array, bias: Array, noise_cov: Array, errors: Errors) -> str:
    """A table of four lines, a column for each coordinate."""
    rows = {
        "context mean": (context_mean, errors.context_mean),
        "context sd": _deviations(context_cov, errors.context_cov),
        "bias": (bias, errors.bias),
        "noise sd": _deviations(noise_cov, errors.noise_cov),
    }
    return "\n".join(f"{name:13}{_line(*row)}".rstrip() for name, row in rows.items())


def _deviations(cov: Array, error: Array) -> tuple[Array, Array]:
    deviations = np.sqrt(np.diag(cov))
    return deviations, (np.diag(error) if error.ndim else error) / np.where(deviations, 2 * deviations, 1.0)


def _line(values: Array, errors: Array) -> str:
    pairs = zip(values, np.broadcast_to(errors, values.shape), strict=True)
    return " ".join(f"{_number(value, error):20}" for value, error in pairs)


def _number(value: float, error: float) -> str:
    return f"{value:.4g}" if np.isnan(error) else f"{value:.4g} ± {error:.2g}"


@check_keywords
def calibrate(
    noisy: npt.ArrayLike,
    true: npt.ArrayLike,
    *,
    groups: npt.ArrayLike | None = None,
    times: npt.ArrayLike | None = None,
    cycles: Sequence[float] | Array = (),
) -> Calibration:
    """Estimate a channel from pairs: noisy and true contexts, (n, d) each, in the same units.

    A pair with a missing value (NaN, or masked) is left out whole, so every estimate is of the same pairs
    and every covariance is one. That is unbiased where values are missing at random.

    `groups` are n labels; pairs of equal label share a bias. They are what shows how far biases spread:
    `bias_cov` is then the covariance between groups, at least noise_cov / n, which is as well as any bias
    can be seen. Groups fewer than d + 1 leave some directions at that floor. Without groups there is one
    bias and nothing to compare it with: `bias_cov` is diag(bias^2) + noise_cov / n, the spread of which that
    one bias would be typical, in whichever direction.

    `times`, n numbers of any unit, say when: then `timing` has the constants of time
    (`unfog.channel.fit_dynamics`), with `cycles` of these periods if asked for. Groups are then devices or
    persons, and in none of them times go back. Where noisy contexts without a true one are more than the
    pairs, both are used (unless there are cycles).
    """
    data = Study(*moments.beside("noisy", noisy, true), groups)
    rows = moments.complete("noisy", data.noisy, data.true)
    periods = check_periods(cycles)
    if periods and times is None:
        raise InputError("cycles", cycles, "none without times")
    calibration = _estimate(rows, moments.labels(groups, rows.kept))
    if times is None:
        return _add_note(calibration, data.alone, UNUSED + (BY_SUBSET if groups is None else ""))
    few = data.alone > calibration.pairs and not periods
    covs = Covs(calibration.context_cov, calibration.noise_cov, calibration.bias_cov)
    calibration = calibration._replace(timing=fit_time_constants(data, times, periods, covs, few=few))
    return _add_note(calibration, data.alone, FOR_TIME if few else UNUSED)


def _add_note(calibration: Calibration, alone: int, reason: str) -> Calibration:
    """Add a note on readings without a true context beside them."""
    if not alone:
        return calibration
    note = f"{alone} whole readings have no whole truth beside them, {reason}."
    return calibration._replace(design=calibration.design._replace(notes=(*calibration.design.notes, note)))


def _estimate(rows: moments.Rows, labels: Ints) -> Calibration:
    contexts, errors = rows.true, rows.other - rows.true
    n, _ = errors.shape
    means = moments.group_means(errors, labels)
    moments.check_count("noisy", errors, len(means))
    moments.check_varies("true", contexts, contexts, "is constant")
    within = errors - means[labels]
    own = rows.other - moments.group_means(rows.other, labels)[labels]
    moments.check_varies("noisy", own, rows.other, "is constant")
    noisy = errors.any(axis=0) if errors.any() else np.ones(errors.shape[1], bool)  # others are exact
    moments.check_varies("noisy", within[:, noisy], rows.other[:, noisy], "is apart from true by a constant")
    moments.check_independent("true", contexts)
    moments.check_independent("noisy", within[:, noisy])
    noise_cov = within.T @ within / (n - len(means))
    bias = means.mean(axis=0)
    spread = np.diag(bias**2) + noise_cov / n
    if len(means) > 1:
        both, blur = np.ix_(noisy, noisy), float((1 / np.bincount(labels)).mean())
        spread = np.zeros_like(noise_cov)
        spread[both] = between_covariance(means[:, noisy], blur, noise_cov[both], 1 / n)
    context_cov = np.atleast_2d(np.cov(contexts.T))
    law = contexts.mean(axis=0), context_cov
    calibration = Calibration(*law, bias, noise_cov, _symmetric(spread), n, contexts)
    groups = f" in {len(means)} groups" if len(means) > 1 else ""
    errs = Errors(
        standard_error(contexts),
        moments.covariance_error(contexts),
        standard_error(means if groups else errors),
        moments.within_error(within, labels, noise_cov),
    )
    notes = dependence(contexts, errors, labels)
    return calibration._replace(errors=errs, design=Design(PAIRS, f"{n} pairs{groups}", notes))


def _symmetric(matrix: Array) -> Array:
    return (matrix + matrix.T) / 2


def dependence(contexts: Array, errors: Array, labels: Ints) -> tuple[str, ...]:
    """Notes on errors (n, d) that depend on their true contexts (n, d); `labels` (n,) are groups."""
    d = contexts.shape[1]
    centred, within = (part - moments.group_means(part, labels)[labels] for part in (contexts, errors))
    spread = np.sqrt((centred**2).mean(axis=0))
    if len(centred) < FEW * d + labels.max() or not spread.all():
        return ()
    slope, error = _slopes(centred / spread, within / spread, 1 / np.bincount(labels)[labels])
    far = np.argwhere(np.abs(slope) > FAR * error)
    return tuple(_describe(int(j), int(k), slope[j, k], error[j, k]) for j, k in far)


def _slopes(centred: Array, within: Array, own: Array) -> tuple[Array, Array]:
    """B and its standard errors, (d, d) each; `own` is the leverage of a row on the mean of its group."""
    gram = centred.T @ centred
    if np.linalg.eigvalsh(gram / len(centred))[0] < moments.SINGULAR:  # contexts stay the same in each group
        return np.zeros_like(gram), np.ones_like(gram)
    lines = centred @ np.linalg.inv(gram)
    slope = within.T @ lines
    room = 1 - own - (lines * centred).sum(axis=1)
    alone = room < moments.SINGULAR  # a row that decides its own fit says nothing
    rest = np.where(alone[:, None], 0.0, within - centred @ slope.T) / np.where(alone, 1.0, room)[:, None]
    variances = [(rest**2).T @ lines**2, *(_in_blocks(rest, lines, number) for number in BLOCKS)]
    return slope, np.sqrt(np.max(variances, axis=0))


def _in_blocks(rest: Array, lines: Array, number: int) -> Array:
    """Squared errors of slopes if only blocks of rows, `number` of them, are independent."""
    blocks = zip(np.array_split(rest, number), np.array_split(lines, number), strict=True)
    squares: Array = np.sum([(rest_block.T @ line_block) ** 2 for rest_block, line_block in blocks], axis=0)
    return squares


def _describe(j: int, k: int, slope: float, error: float) -> str:
    if j == k:
        return (
            f"Errors depend on the truth: where that of coordinate {j} moves by 1, the reading moves by"
            f" {1 + slope:.2f} ± {error:.2f}, and 1 is assumed. First turn readings into contexts with"
            f" unfog.channel.calibration.affine(noisy, true). {TIME}"
        )
    return (
        f"Errors depend on the truth: that of coordinate {j} moves by {slope:.2f} ± {error:.2f} deviations of"
        f" contexts where coordinate {k} moves by one, and 0 is assumed. {TIME}"
    )


@check_keywords
def affine(raw: npt.ArrayLike, true: npt.ArrayLike) -> Affine:
    """The line of each sensor (n, d) over the true context beside it (n, d), by least squares.

    >>> from unfog.channel.calibration import affine
    >>> true = [[0.0], [1.0], [2.0], [3.0]]
    >>> raw = [[32.0], [33.8], [35.6], [37.4]]  # in degrees of Fahrenheit
    >>> line = affine(raw, true)
    >>> line.gain.round(3).tolist(), line.offset.round(3).tolist()
    ([1.8], [32.0])
    >>> line.contexts(raw).round(3).tolist() == true
    True
    """
    rows = moments.complete("raw", raw, true)
    moments.check_varies("true", rows.true, rows.true, "is constant")
    moments.check_varies("raw", rows.other, rows.other, "is constant")
    centre = rows.true.mean(axis=0)
    shifted = rows.true - centre
    gain = (shifted * rows.other).sum(axis=0) / (shifted**2).sum(axis=0)
    return Affine(gain, rows.other.mean(axis=0) - gain * centre)
