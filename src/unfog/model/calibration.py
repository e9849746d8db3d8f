"""What pairs of noisy and true contexts say of a channel: chat = c + gamma + n, as `Knowledge` wants it.

With errors e = noisy - true, and groups g (weeks, devices, sites) each with a bias of its own,

    Sigma_n     = sum_g sum_i (e_gi - mean_g)(e_gi - mean_g)' / (n - G)
    bias        = the mean over groups of mean_g
    Sigma_gamma = sum_g (mean_g - bias)(mean_g - bias)' / (G - 1) - Sigma_n * mean(1 / n_g)

the random-effects estimator by moments (S. R. Searle, G. Casella, C. E. McCulloch, *Variance Components*),
unbiased for any sizes n_g. mu_c and Sigma_c are the sample moments of the true contexts.

Sensors often read in units of their own. Then `affine` comes first: it regresses readings on true contexts,
raw = gain c + offset + e, the direction in which the error is the sensor's, and turns the line around. The
opposite regression shrinks readings towards the mean, which is the denoiser's task, and would do it twice.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from unfog.inputs import InputError
from unfog.maths.arrays import Array, Ints
from unfog.model import errors as standard
from unfog.model import tables
from unfog.model.between import between
from unfog.model.channel import Channel
from unfog.model.constants import Constant
from unfog.model.dependence import dependence
from unfog.model.design import PAIRS, Design
from unfog.model.errors import UNTOLD, Errors
from unfog.model.seldom import Covs
from unfog.model.statement import statement
from unfog.model.tempo import Tempo
from unfog.model.timed import Study, timed
from unfog.model.timing import Timing, check_periods

UNUSED = "and are not used"
BY_SUBSET = ': design="subset" uses them'
FOR_TIME = "and are used for the constants of time alone"


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
        return Channel(*laws, self.bias, sample=self.contexts, tempo=self.tempo)

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
    def tempo(self) -> Tempo | None:
        """How contexts and errors move in time; None without times."""
        return None if self.timing is None else self.timing.tempo

    @property
    def constants(self) -> dict[str, Constant] | None:
        """The numbers of that, with standard errors and limits; None without times."""
        return None if self.timing is None else self.timing.constants


class Affine(NamedTuple):
    """Sensor readings as lines of the true contexts, coordinate by coordinate.

    >>> import numpy as np
    >>> from unfog.model.calibration import Affine
    >>> line = Affine(gain=np.array([2.0]), offset=np.array([1.0]))
    >>> line.contexts(np.array([[1.0], [5.0]])).tolist()
    [[0.0], [2.0]]
    """

    gain: Array  # (d,)
    offset: Array  # (d,)

    def contexts(self, raw: Array) -> Array:
        """Readings (..., d) in the units of the contexts."""
        return (raw - self.offset) / self.gain


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

    `times`, n numbers of any unit, say when: then `timing` has the constants of time (`unfog.model.timing`),
    with `cycles` of these periods if asked for. Groups are then devices or persons, and in none of them times
    go back. Where noisy contexts without a true one are more than the pairs, both are used (unless there are
    cycles).
    """
    given = Study(*tables.beside("noisy", noisy, true), groups)
    rows = tables.complete("noisy", given.noisy, given.true)
    periods = check_periods(cycles)
    if periods and times is None:
        raise InputError("cycles", cycles, "none without times")
    found = _moments(rows, tables.labels(groups, rows.kept))
    if times is None:
        return _noted(found, given.alone, UNUSED + (BY_SUBSET if groups is None else ""))
    few = given.alone > found.pairs and not periods
    covs = Covs(found.context_cov, found.noise_cov, found.bias_cov)
    found = found._replace(timing=timed(given, times, periods, covs, few=few))
    return _noted(found, given.alone, FOR_TIME if few else UNUSED)


def _noted(found: Calibration, alone: int, words: str) -> Calibration:
    """With what became of readings that have no truth beside them."""
    if not alone:
        return found
    note = f"{alone} whole readings have no whole truth beside them, {words}."
    return found._replace(design=found.design._replace(notes=(*found.design.notes, note)))


def _moments(rows: tables.Rows, labels: Ints) -> Calibration:
    contexts, errors = rows.true, rows.other - rows.true
    n, _ = errors.shape
    means = tables.group_means(errors, labels)
    tables.check_count("noisy", errors, len(means))
    tables.check_varies("true", contexts, contexts, "is constant")
    within = errors - means[labels]
    own = rows.other - tables.group_means(rows.other, labels)[labels]
    tables.check_varies("noisy", own, rows.other, "is constant")
    tables.check_varies("noisy", within, rows.other, "is apart from true by a constant")
    tables.check_independent("true", contexts)
    tables.check_independent("noisy", within)
    noise_cov = within.T @ within / (n - len(means))
    bias = means.mean(axis=0)
    spread = np.diag(bias**2) + noise_cov / n
    if len(means) > 1:
        spread = between(means, float((1 / np.bincount(labels)).mean()), noise_cov, 1 / n)
    context_cov = np.atleast_2d(np.cov(contexts.T))
    law = contexts.mean(axis=0), context_cov
    found = Calibration(*law, bias, noise_cov, _symmetric(spread), n, contexts)
    groups = f" in {len(means)} groups" if len(means) > 1 else ""
    errs = Errors(
        standard.of_mean(contexts),
        standard.of_covariance(contexts),
        standard.of_mean(means if groups else errors),
        standard.of_within(within, labels, noise_cov),
    )
    notes = dependence(contexts, errors, labels)
    return found._replace(errors=errs, design=Design(PAIRS, f"{n} pairs{groups}", notes))


def affine(raw: npt.ArrayLike, true: npt.ArrayLike) -> Affine:
    """The line of each sensor (n, d) over the true context beside it (n, d), by least squares.

    >>> from unfog.model.calibration import affine
    >>> true = [[0.0], [1.0], [2.0], [3.0]]
    >>> raw = [[32.0], [33.8], [35.6], [37.4]]  # in degrees of Fahrenheit
    >>> line = affine(raw, true)
    >>> line.gain.round(3).tolist(), line.offset.round(3).tolist()
    ([1.8], [32.0])
    >>> line.contexts(raw).round(3).tolist() == true
    True
    """
    rows = tables.complete("raw", raw, true)
    tables.check_varies("true", rows.true, rows.true, "is constant")
    tables.check_varies("raw", rows.other, rows.other, "is constant")
    centre = rows.true.mean(axis=0)
    shifted = rows.true - centre
    gain = (shifted * rows.other).sum(axis=0) / (shifted**2).sum(axis=0)
    return Affine(gain, rows.other.mean(axis=0) - gain * centre)


def _symmetric(matrix: Array) -> Array:
    return (matrix + matrix.T) / 2
