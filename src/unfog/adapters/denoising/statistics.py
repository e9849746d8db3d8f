"""Sums over all rows so far, and from these the mean of contexts and the biases of devices.

The sums are kept, so that adding more rows gives the same result as all rows at once. A row is y = (x, t), a
reading and its true context, NaN where lost or not known. For rows of one device that lack the same numbers
and share a noise, the count and the sum are sufficient: they make one entry. A row with a noise of its own is
an entry by itself. Besides the entries there are second moments: of readings, by device and for every two
coordinates that are present, and of complete pairs. All sums are about a centre, so that they lose no digits.

The mean of contexts and the biases of devices are estimated together (`solve_joint`), since each is uncertain
given the other. A row of device g has x = mu + b_g + (c - mu) + n and t = mu + (c - mu), so that

    y = H (mu, b_g) + error,   H = [[I, I], [I, 0]],   Cov(error) = [[C + N, C], [C, C]],

of which a row has the numbers that are present. Biases are b_g ~ N(beta, K^-1). mu and beta are either given
or have flat priors. That is a linear mixed model, solved by generalised least squares (S. R.
Searle, G. Casella, C. E. McCulloch, *Variance Components*, chapter 7): each b_g is eliminated, then mu and
beta are found in 2 d equations. Since it uses the likelihood of all readings, it also holds if readings
decided which truths were looked up (T. W. Anderson, *Maximum Likelihood Estimates for a Multivariate Normal
Distribution when Some Observations are Missing*).

If the law of contexts and the noise are known, biases are learnt row by row (`learn_biases`), one for each
device: gamma ~ N(offset, Sigma_gamma). What a row says about its device's bias is the same as in the agents'
denoiser (`unfog.agents.denoise.incomplete`): a term in information form, whatever is lost of the row and
known of its true context. Terms add up, device by device. A bias that walks takes a step after each reading
of its device, as in `unfog.agents.denoise.drift`: its covariance grows by that of the step.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from unfog.adapters.denoising.arguments import Rows
from unfog.agents.denoise.incomplete import Incomplete, Parameters, State
from unfog.channel.knowledge import Knowledge, masked_inverse
from unfog.features import Context
from unfog.maths.arrays import Array, Bools, Ints, diagonal_matrix, matvec

CODED = 40  # columns up to which a pattern of gaps is a binary number
JOINT_CELLS = 2**18  # numbers in a batch of matrices of (x, t)
CELLS = 2**21  # numbers in a batch of terms of rows
EXACT = 1e-12  # share of a context's variance that replaces a noise variance of zero
DENOISER = Incomplete()


class Entries(NamedTuple):
    """P groups of rows with the same device, gaps and noise."""

    of: Ints  # (P,)  their device
    mask: Array  # (P, 2 d)  1 where a number is present
    times: Array  # (P,)  how many rows
    total: Array  # (P, 2 d)  their sum, about the centre
    noise: Array  # (P, d, d)  NaN: that of all rows without a noise of their own

    def at(self, index: Any) -> "Entries":
        """Some of the entries."""
        picked = self.of[index], self.mask[index], self.times[index], self.total[index]
        return Entries(*picked, self.noise[index])

    def beside(self, more: "Entries") -> "Entries":
        """These entries, followed by others."""
        return Entries(
            np.concatenate([self.of, more.of]),
            np.concatenate([self.mask, more.mask]),
            np.concatenate([self.times, more.times]),
            np.concatenate([self.total, more.total]),
            np.concatenate([self.noise, more.noise]),
        )


class Sums(NamedTuple):
    """Second moments; the first axis, where there are three, is of devices."""

    both: Array  # (G, d, d)  how many readings have both coordinates
    total: Array  # (G, d, d)  sum of coordinate j over these
    product: Array  # (d, d)
    pairs: Array  # (G,)  whole readings with whole truths
    pair_total: Array  # (G, 2 d)
    pair_product: Array  # (2 d, 2 d)
    own: Array  # (d, d)  how many rows of `both` have a noise of their own
    own_noise: Array  # (d, d)  the sum of these noises


class History(NamedTuple):
    """The sums and entries of all rows so far."""

    centre: Array  # (d,)
    devices: dict[Hashable, int]
    entries: Entries
    sums: Sums

    @property
    def has_truths(self) -> bool:
        """Whether any true context, or a part of one, is known."""
        return bool(self.entries.mask[:, self.centre.size :].any())

    @property
    def known_columns(self) -> Bools:
        """Which coordinates of true contexts are ever known, (d,)."""
        return np.asarray(self.entries.mask[:, self.centre.size :].any(axis=0))

    @property
    def has_own_noise(self) -> bool:
        """Whether any row had a noise of its own."""
        return bool(self.sums.own.any())


class Terms(NamedTuple):
    """What the rows of each device say about (mu, b), in information form."""

    precision: Array  # (G, 2 d, 2 d)
    natural: Array  # (G, 2 d)


class Errors(NamedTuple):
    """The covariances of the errors of rows."""

    context: Array  # (d, d)  C
    noise: Array  # (d, d)  N of a row without a noise of its own
    pair: Array | None  # (2 d, 2 d)  of (x, t) of such a row, if estimated from pairs; else from C and N


class Joint(NamedTuple):
    """Joint estimates of the mean of contexts and of biases."""

    centre: Array  # (2 d,)  of (mu, beta)
    centre_cov: Array  # (2 d, 2 d)
    bias: Array  # (G, d)
    bias_cov: Array  # (G, d, d)
    cross: Array  # (G, d, d)  of mu and the biases


class Beliefs(NamedTuple):
    """Beliefs about the biases of some devices."""

    mean: Array  # (G, d)
    cov: Array  # (G, d, d)
    cross: Array  # (G, d, d)  covariance of the mean of contexts and the bias


@dataclass(frozen=True, kw_only=True)
class Biases:
    """Beliefs about all biases, less their offset."""

    offset: Array  # (d,)  what all devices have in common
    prior: State | None  # of a device that was never seen; None: there is no bias but the offset
    known: dict[Hashable, State]
    walk: Array | None = None  # (d, d)  covariance of a step
    mean_cov: Array | None = None  # (d, d)  of the mean of contexts, where it was found together with biases
    crosses: Mapping[Hashable, Array] = field(
        default_factory=dict
    )  # (d, d)  of that mean and a device's bias
    cross: Array | None = None  # (d, d)  of that mean and the bias of a device that was never seen

    def each(self, devices: Sequence[Hashable]) -> Beliefs:
        """The beliefs about the biases of these devices."""
        dim, count = self.offset.size, len(devices)
        if self.prior is None:
            zero = np.zeros((count, dim, dim))
            return Beliefs(np.broadcast_to(self.offset, (count, dim)), zero, zero)
        states = [self.known.get(device, self.prior) for device in devices]
        mean, cov = moments(State(*(np.stack(part) for part in zip(*states, strict=True))))
        cross = np.zeros_like(cov)
        if self.cross is not None:
            cross = np.stack([self.crosses.get(device, self.cross) for device in devices])
        return Beliefs(self.offset + mean, cov, cross)

    def of(self, device: Hashable) -> tuple[Array, Array]:
        """Mean (d,) and covariance (d, d) of a device's bias."""
        if self.prior is None:
            return self.offset, np.zeros((self.offset.size,) * 2)
        mean, cov = moments(self.known.get(device, self.prior))
        return self.offset + mean, cov


def add_rows(history: History | None, rows: Rows, noise: Array | None) -> History:
    """The history after more rows; `noise` is theirs, (n, d, d) or (d, d), or None."""
    dim = rows.noisy.shape[1]
    centre = middle(rows.noisy) if history is None else history.centre
    devices = {} if history is None else dict(history.devices)
    for device in rows.devices if len(rows.of) else ():
        devices.setdefault(device, len(devices))
    index = np.array([devices.get(device, 0) for device in rows.devices], np.intp)
    of = index[rows.of]
    true = np.full(rows.noisy.shape, np.nan) if rows.true is None else rows.true
    both = np.concatenate([rows.noisy - centre, true - centre], axis=1)
    entries, sums = _make_entries(both, of, noise), _make_sums(both, of, noise, len(devices))
    if history is not None:
        entries, sums = _join(history.entries, entries), _add(history.sums, sums)
    return History(np.asarray(centre.reshape(dim)), devices, entries, sums)


def middle(rows: Array) -> Array:
    """The mean of each column without its gaps, zero for an empty column."""
    return np.asarray(np.nansum(rows, axis=0) / np.maximum((~np.isnan(rows)).sum(0), 1))


def _make_entries(both: Array, of: Ints, noise: Array | None) -> Entries:
    n, dim = len(both), both.shape[1] // 2
    present = ~np.isnan(both)
    mask, total = present.astype(np.float64), np.where(present, both, 0.0)
    if noise is not None and noise.ndim == 3:
        return Entries(of, mask, np.ones(n), total, noise)
    shared = np.full((dim, dim), np.nan) if noise is None else noise
    entries = _merge(Entries(of, mask, np.ones(n), total, np.empty((n, 0, 0))))
    return entries._replace(noise=np.broadcast_to(shared, (len(entries.of), dim, dim)))


def _merge(entries: Entries) -> Entries:
    """One entry for each device and pattern; their noise is left out."""
    if not len(entries.of):
        return entries
    code = codes(entries.mask > 0) * (int(entries.of.max()) + 1) + entries.of
    _, first, index = np.unique(code, return_index=True, return_inverse=True)
    total = np.zeros((len(first), entries.total.shape[1]))
    np.add.at(total, index, entries.total)
    times = np.bincount(index, entries.times, len(first)).astype(np.float64)
    return entries.at(first)._replace(times=times, total=total)


def codes(lost: Bools) -> Ints:
    """A whole number for each pattern of gaps."""
    if lost.shape[1] <= CODED:
        return lost @ (1 << np.arange(lost.shape[1], dtype=np.intp))
    return np.unique(lost, axis=0, return_inverse=True)[1].reshape(-1)


def _join(before: Entries, more: Entries) -> Entries:
    both = before.beside(more)
    shared = np.isnan(both.noise).all(axis=(-2, -1))
    return _merge(both.at(shared)).beside(both.at(~shared))


def _make_sums(both: Array, of: Ints, noise: Array | None, devices: int) -> Sums:
    dim = both.shape[1] // 2
    present = ~np.isnan(both)
    seen, centred = present[:, :dim].astype(np.float64), np.where(present, both, 0.0)
    read = centred[:, :dim]
    is_complete = present.all(axis=1)
    pairs = centred[is_complete]
    pair_total = np.zeros((devices, 2 * dim))
    np.add.at(pair_total, of[is_complete], pairs)
    count, blur = np.zeros((dim, dim)), np.zeros((dim, dim))
    if noise is not None:
        count = seen.T @ seen
        blur = noise * count if noise.ndim == 2 else np.einsum("nj,nk,njk->jk", seen, seen, noise)
    return Sums(
        _sums_by_device(seen, seen, of, devices),
        _sums_by_device(read, seen, of, devices),
        read.T @ read,
        np.bincount(of[is_complete], minlength=devices).astype(np.float64),
        pair_total,
        pairs.T @ pairs,
        count,
        blur,
    )


def _sums_by_device(left: Array, right: Array, of: Ints, devices: int) -> Array:
    """Sums over the rows of each device of left_j right_k, (G, d, d)."""
    if devices == 1:
        return (left.T @ right)[None]
    dim = left.shape[1]
    sums = np.empty((devices, dim, dim))
    for j in range(dim):
        for k in range(dim):
            sums[:, j, k] = np.bincount(of, left[:, j] * right[:, k], devices)
    return sums


def _add(before: Sums, more: Sums) -> Sums:
    """The sums of both; new devices start from zero."""
    wide = len(more.pairs) - len(before.pairs)

    def grown(old: Array, new: Array) -> Array:
        return np.pad(old, [(0, wide), *[(0, 0)] * (old.ndim - 1)]) if len(old) != len(new) else old

    per_device = {"both", "total", "pairs", "pair_total"}
    return Sums(
        *(
            (grown(old, new) if name in per_device else old) + new
            for name, old, new in zip(Sums._fields, before, more, strict=True)
        )
    )


def terms(entries: Entries, devices: int, errors: Errors) -> Terms:
    """The terms of each device, from its entries."""
    dim = len(errors.context)
    precision, natural = np.zeros((devices, 2 * dim, 2 * dim)), np.zeros((devices, 2 * dim))
    for part, inverse in _inverses(entries, errors):
        weighed = np.einsum("pij,pj->pi", inverse, part.total)
        for g, p, h in _by_device(part, inverse, weighed):
            precision[g] += p
            natural[g] += h
    eye, zero = np.eye(dim), np.zeros((dim, dim))
    design = np.block([[eye, eye], [eye, zero]])
    return Terms(design.T @ precision @ design, natural @ design)


def _by_device(part: Entries, inverse: Array, weighed: Array) -> Iterator[tuple[int, Array, Array]]:
    order = np.argsort(part.of, kind="stable")
    starts = np.flatnonzero(np.diff(part.of[order], prepend=-1))
    total = np.add.reduceat((part.times[:, None, None] * inverse)[order], starts, axis=0)
    means = np.add.reduceat(weighed[order], starts, axis=0)
    return zip(part.of[order][starts].tolist(), total, means, strict=True)


def _inverses(entries: Entries, errors: Errors) -> Iterator[tuple[Entries, Array]]:
    """Entries in batches, with the inverse of the covariance of each; shared inverses are computed once."""
    cov = errors.context
    size = max(1, JOINT_CELLS // (4 * len(cov) ** 2))
    has_own_noise = ~np.isnan(entries.noise).all(axis=(-2, -1))
    if not has_own_noise.all():
        shared_entries = entries.at(~has_own_noise)
        _, first, index = np.unique(codes(shared_entries.mask > 0), return_index=True, return_inverse=True)
        shared = _covariance(cov, errors.noise) if errors.pair is None else errors.pair
        inverses = masked_inverse(shared, shared_entries.mask[first])
        for part in _parts(len(index), size):
            yield shared_entries.at(part), inverses[index.reshape(-1)[part]]
    own = entries.at(has_own_noise)
    for part in _parts(len(own.of), size):
        batch = own.at(part)
        yield batch, masked_inverse(_covariance(cov, batch.noise), batch.mask)


def _parts(rows: int, size: int) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, rows, size))


def _covariance(cov: Array, noise: Array) -> Array:
    """The covariance of (x, t), given mu and the bias."""
    floor = EXACT * np.diag(cov) * (np.linalg.diagonal(noise) == 0)
    reading = cov + noise + diagonal_matrix(floor)
    wide = np.broadcast_to(cov, reading.shape)
    return np.concatenate([np.concatenate([reading, wide], -1), np.concatenate([wide, wide], -1)], axis=-2)


def solve_joint(terms_: Terms, spread: Array | None, mean: Array | None, beta: Array | None) -> Joint:
    """Solve for mu, beta and biases of this spread about beta; with None biases have a flat prior.

    A mean or a beta of None is estimated. All are about the centre of the sums.
    """
    dim = terms_.natural.shape[1] // 2
    of_mean, of_bias = slice(dim), slice(dim, None)
    inward = np.zeros((dim, dim)) if spread is None else np.linalg.inv(spread)
    mm, mb, bb = (
        terms_.precision[:, i, j] for i, j in ((of_mean, of_mean), (of_mean, of_bias), (of_bias, of_bias))
    )
    left = np.linalg.inv(bb + inward)
    link = np.concatenate([mb, np.broadcast_to(-inward, mb.shape)], axis=1)
    precision = np.zeros((2 * dim, 2 * dim))
    precision[:dim, :dim], precision[dim:, dim:] = mm.sum(0), len(mm) * inward
    precision = precision - (link @ left @ link.mT).sum(0)
    natural = np.concatenate([terms_.natural[:, :dim].sum(0), np.zeros(dim)])
    natural = natural - np.einsum("gij,gjk,gk->i", link, left, terms_.natural[:, dim:])
    centre, centre_cov = _centre(precision, natural, mean, np.zeros(dim) if spread is None else beta)
    bias = np.einsum("gij,gj->gi", left, terms_.natural[:, dim:] - centre @ link)
    shift = left @ link.mT
    cross = -(centre_cov @ shift.mT)[:, :dim]
    return Joint(centre, centre_cov, bias, left + shift @ centre_cov @ shift.mT, cross)


def widen(joint: Joint, student: float, slopes: Array) -> Joint:
    """Widen covariances by a factor, and by errors (`slopes`) that shift the mean and biases oppositely."""
    dim = len(slopes)
    centre = joint.centre_cov.copy()
    centre[:dim, :dim] += slopes
    centre[:dim, dim:] -= slopes
    centre[dim:, :dim] -= slopes
    centre[dim:, dim:] += slopes
    return joint._replace(
        centre_cov=student * centre,
        bias_cov=student * (joint.bias_cov + slopes),
        cross=student * (joint.cross - slopes),
    )


def _centre(precision: Array, natural: Array, mean: Array | None, beta: Array | None) -> tuple[Array, Array]:
    """Mean and covariance of (mu, beta), of which some may be given."""
    dim = len(natural) // 2
    centre = np.concatenate([np.zeros(dim) if part is None else part for part in (mean, beta)])
    # A coordinate that was never read cannot be estimated: it stays at the centre.
    free = np.repeat([mean is None, beta is None], dim) & (np.diag(precision) > 0)
    cov = np.zeros_like(precision)
    if free.any():
        own = np.linalg.inv(precision[np.ix_(free, free)])
        centre[free] = own @ (natural[free] - precision[np.ix_(free, ~free)] @ centre[~free])
        cov[np.ix_(free, free)] = (own + own.T) / 2
    return centre, cov


def prior_biases(offset: Array, cov: Array | None, walk: Array | None = None) -> Biases:
    """Beliefs about biases before any reading."""
    prior = None if cov is None else _make_state(np.zeros_like(offset), cov)
    return Biases(offset=offset, prior=prior, known={}, walk=walk)


def joint_biases(devices: Mapping[Hashable, int], joint: Joint, spread: Array | None) -> Biases:
    """Beliefs about biases that were estimated together with the mean of contexts.

    One device alone does not show how far biases spread: a new one is expected to be as large as that one.
    """
    dim = joint.bias.shape[1]
    states = _make_state(joint.bias, (joint.bias_cov + joint.bias_cov.mT) / 2)
    if spread is None:
        prior = _make_state(joint.bias[0], joint.bias_cov[0] + np.diag(joint.bias[0] ** 2))
    else:
        prior = _make_state(joint.centre[dim:], joint.centre_cov[dim:, dim:] + spread)
    return Biases(
        offset=np.zeros(dim),
        prior=prior,
        known={device: State(*(part[i] for part in states)) for device, i in devices.items()},
        mean_cov=joint.centre_cov[:dim, :dim],
        crosses={device: joint.cross[i] for device, i in devices.items()},
        cross=joint.cross[0] if spread is None else joint.centre_cov[:dim, dim:],
    )


def _make_state(mean: Array, cov: Array) -> State:
    precision = cov.__array_namespace__().linalg.inv(cov)
    return State(precision, matvec(precision, mean))


def moments(state: State) -> tuple[Array, Array]:
    """The mean and the covariance of a belief in information form."""
    cov = state.precision.__array_namespace__().linalg.inv(state.precision)
    return matvec(cov, state.natural_mean), cov


def learn_biases(biases: Biases, law: Context, noise: Array, rows: Rows) -> Biases:
    """Biases after these rows, with noise (d, d) or (n, d, d) and what is known of their true contexts."""
    if biases.prior is None:
        return biases
    known = dict(biases.known)
    for part in _batches(*rows.noisy.shape):
        of, truths = rows.of[part], None if rows.true is None else rows.true[part]
        noises = noise[part] if noise.ndim == 3 else noise
        terms = _terms(law, noises, rows.noisy[part] - biases.offset, truths)
        order = np.argsort(of, kind="stable")
        for rows_of_device in np.split(order, np.flatnonzero(np.diff(of[order])) + 1):
            device = rows.devices[of[rows_of_device[0]]]
            each = State(terms.precision[rows_of_device], terms.natural_mean[rows_of_device])
            known[device] = _fold(known.get(device, biases.prior), each, biases.walk)
    return replace(biases, known=known)


def _batches(rows: int, dim: int) -> Iterator[slice]:
    """Rows in batches whose matrices fit into memory."""
    return _parts(rows, max(1, CELLS // dim**2))


def _terms(law: Context, noise: Array, rows: Array, true: Array | None) -> State:
    """What each row says about its bias, in information form."""
    dim = rows.shape[1]
    empty = State(np.zeros((dim, dim)), np.zeros(dim))
    return DENOISER.update(_parameters(law, noise), empty, rows, true)


def _parameters(law: Context, noise: Array) -> Parameters:
    """The parameters of the denoiser; its prior of the bias does not matter for a term."""
    dim = law.mean.size
    floor = EXACT * np.diag(law.cov) * (np.linalg.diagonal(noise) == 0)
    theta = np.zeros(1), np.eye(1)
    channel = Knowledge(law.mean, law.cov, noise + diagonal_matrix(floor), np.eye(dim), *theta)
    return DENOISER.setup(channel, None)


def _fold(state: State, terms: State, walk: Array | None) -> State:
    """A belief after the terms of several rows, in their order."""
    if walk is None:
        return state.plus(State(terms.precision.sum(0), terms.natural_mean.sum(0)))
    for precision, natural_mean in zip(*terms, strict=True):
        mean, cov = moments(state.plus(State(precision, natural_mean)))
        state = _make_state(mean, cov + walk)
    return state
