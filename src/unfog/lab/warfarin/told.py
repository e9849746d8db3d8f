"""What agents are told of contexts and errors: from patients set apart, none of whose doses anybody sees.

True contexts are counted in standard deviations from their mean. Of each coordinate the pairs at hand, record
and noisy, then give a line noisy = gain c + offset + e and the variance of e; it is turned around,
(noisy - offset) / gain. That is `unfog.channel.calibration.affine`, coordinate by coordinate, each from the
patients who have it: among those who lack nothing a rare indicator may be constant, and would be refused.

The law of contexts is a Gaussian, whose moments are found from rows with gaps by EM: each step fills what is
missing of row i with its mean given the rest, and adds what is left of its covariance,

    b_i = u + H E_i (x_i - u),   B_i = H - H E_i H,   u <- mean_i b_i,   H <- mean_i ((b_i - u)(..)' + B_i),

E_i being the inverse of the observed part of H and zero elsewhere (A. P. Dempster, N. M. Laird and D. B.
Rubin, *Maximum Likelihood from Incomplete Data via the EM Algorithm*).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unfog.channel.calibration import affine
from unfog.channel.knowledge import masked_inverse, masked_shrinkage, posterior_mean
from unfog.maths.arrays import Array, matvec

STEPS = 60  # of EM: the record's gaps need about 30
LEAST = 1e-6  # variance of an error, or share of a variance that no other coordinate explains


class Lines(NamedTuple):
    """value = scale * inside + centre, coordinate by coordinate."""

    centre: Array  # (..., d)
    scale: Array  # (..., d)

    def inside(self, values: Array) -> Array:
        """Values (..., n, d) in these units."""
        return (values - self.centre[..., None, :]) / self.scale[..., None, :]

    def outside(self, inside: Array) -> Array:
        """And back."""
        return inside * self.scale[..., None, :] + self.centre[..., None, :]


class Told(NamedTuple):
    """The channel, in deviations of true contexts; and what it takes to get there."""

    context_mean: Array  # (..., d)
    context_cov: Array  # (..., d, d)
    noise_cov: Array  # (..., d, d)
    bias_cov: Array  # (..., d, d)
    record: Lines  # from true contexts
    noisy: Lines  # from noisy ones
    face_value: Lines  # from noisy ones to deviations of noisy ones, for those who take them for true

    def filled(self, contexts: Array, noise: Array) -> Array:
        """The mean of the true context given what is not missing: (..., n, d) in deviations."""
        mean, cov = self.context_mean[..., None, :], self.context_cov[..., None, :, :]
        gaps = np.isnan(contexts)
        shrunk = masked_shrinkage(mean, cov, noise[..., None, :, :], (~gaps).astype(np.float64))
        return posterior_mean(shrunk, np.where(gaps, mean, contexts), np.zeros_like(mean))

    def denoised(self, noisy: Array) -> Array:
        """That of noisy contexts (..., n, d)."""
        return self.filled(self.noisy.inside(noisy), self.noise_cov)


def told(record: Array, noisy: Array) -> Told:
    """From pairs (n, d) each, with gaps."""
    units, face_value = (Lines(np.nanmean(seen, 0), np.nanstd(seen, 0)) for seen in (record, noisy))
    standard = units.inside(record)
    pairs = [_line(*both) for both in zip(standard.T, noisy.T, strict=True)]
    gain, offset, variance, count = np.array(pairs).T
    noise = np.maximum(variance / gain**2, LEAST)
    covs = np.diag(noise), np.diag(np.maximum(noise / count, LEAST))
    return Told(*moments(standard), *covs, units, Lines(offset, gain), face_value)


def _line(true: Array, noisy: Array) -> tuple[float, float, float, int]:
    """Gain, offset, the variance of what is left, and of how many pairs."""
    known = ~np.isnan(true + noisy)
    x, y = true[known, None], noisy[known, None]
    line = affine(y, x)
    left = y - line.offset - line.gain * x
    return line.gain.item(), line.offset.item(), float(np.mean(left**2)), len(left)


def moments(rows: Array, steps: int = STEPS) -> tuple[Array, Array]:
    """Mean (d,) and covariance (d, d) of rows (n, d) with gaps, by maximum likelihood."""
    gaps = np.isnan(rows)
    patterns, which, counts = np.unique(gaps, axis=0, return_inverse=True, return_counts=True)
    mean, cov = np.nanmean(rows, 0), np.diag(np.nanvar(rows, 0))
    floor = LEAST * cov
    for _ in range(steps):
        precision = masked_inverse(cov, (~patterns).astype(np.float64))  # one for each pattern of gaps
        gain = cov @ precision
        filled = mean + matvec(gain[which], np.where(gaps, 0.0, rows - mean))
        left = np.tensordot(counts / len(rows), cov - gain @ cov, 1)
        mean = filled.mean(0)
        cov = (filled - mean).T @ (filled - mean) / len(rows) + left + floor
    return mean, (cov + cov.T) / 2


def stacked(found: Sequence[Told]) -> Told:
    """One for each order of patients, side by side."""
    return Told(
        np.stack([one.context_mean for one in found]),
        np.stack([one.context_cov for one in found]),
        np.stack([one.noise_cov for one in found]),
        np.stack([one.bias_cov for one in found]),
        _side_by_side([one.record for one in found]),
        _side_by_side([one.noisy for one in found]),
        _side_by_side([one.face_value for one in found]),
    )


def _side_by_side(found: Sequence[Lines]) -> Lines:
    return Lines(np.stack([one.centre for one in found]), np.stack([one.scale for one in found]))
