"""The biases of devices, each of its own: gamma ~ N(offset, Sigma_gamma), learnt from what the device reads.

What a row says of its device's bias is what the agents' denoiser has it to say
(`unfog.agents.denoise.incomplete`): a term in information form, whatever of the row was lost and whatever is
known of its true context. Terms add up, device by device. A bias that walks takes a step after each reading
of its device, as in `unfog.agents.denoise.drift`: its covariance grows by that of the step.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from unfog.adapters.denoising.joint import EXACT, Joint
from unfog.adapters.denoising.told import Rows
from unfog.agents.denoise.incomplete import Incomplete, Parameters, State
from unfog.channel.knowledge import Knowledge
from unfog.features import Context
from unfog.maths.arrays import Array, diagonal_matrix, matvec

CELLS = 2**21  # numbers of a batch of matrices that are made at once
DENOISER = Incomplete()


class Beliefs(NamedTuple):
    """Of the biases of some devices."""

    mean: Array  # (G, d)
    cov: Array  # (G, d, d)
    cross: Array  # (G, d, d)  covariance of the mean of contexts and the bias


@dataclass(frozen=True, kw_only=True)
class Biases:
    """What is believed of the biases, less their offset."""

    offset: Array  # (d,)  what all devices have in common
    prior: State | None  # of a device that was never seen; None: there is no bias but the offset
    known: dict[Hashable, State]
    walk: Array | None = None  # (d, d)  covariance of a step
    mean_cov: Array | None = None  # (d, d)  of the mean of contexts, where it was found together with biases
    crosses: Mapping[Hashable, Array] = field(
        default_factory=dict
    )  # (d, d)  of that mean and a device's bias
    cross: Array | None = None  # (d, d)  of that mean and the bias of a device that was never seen

    def each(self, devices: Sequence[Hashable]) -> "Beliefs":
        """What is believed of these."""
        dim, count = self.offset.size, len(devices)
        if self.prior is None:
            none = np.zeros((count, dim, dim))
            return Beliefs(np.broadcast_to(self.offset, (count, dim)), none, none)
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


def unseen(offset: Array, cov: Array | None, walk: Array | None = None) -> Biases:
    """Before any reading."""
    prior = None if cov is None else _state(np.zeros_like(offset), cov)
    return Biases(offset=offset, prior=prior, known={}, walk=walk)


def found(devices: Mapping[Hashable, int], joint: Joint, spread: Array | None) -> Biases:
    """As they were found together with the mean of contexts.

    Of one device alone nobody knows how far biases spread: a new one is taken for as large as that one.
    """
    dim = joint.bias.shape[1]
    states = _state(joint.bias, (joint.bias_cov + joint.bias_cov.mT) / 2)
    if spread is None:
        prior = _state(joint.bias[0], joint.bias_cov[0] + np.diag(joint.bias[0] ** 2))
    else:
        prior = _state(joint.centre[dim:], joint.centre_cov[dim:, dim:] + spread)
    return Biases(
        offset=np.zeros(dim),
        prior=prior,
        known={device: State(*(part[i] for part in states)) for device, i in devices.items()},
        mean_cov=joint.centre_cov[:dim, :dim],
        crosses={device: joint.cross[i] for device, i in devices.items()},
        cross=joint.cross[0] if spread is None else joint.centre_cov[:dim, dim:],
    )


def _state(mean: Array, cov: Array) -> State:
    precision = cov.__array_namespace__().linalg.inv(cov)
    return State(precision, matvec(precision, mean))


def moments(state: State) -> tuple[Array, Array]:
    """Mean and covariance."""
    cov = state.precision.__array_namespace__().linalg.inv(state.precision)
    return matvec(cov, state.natural_mean), cov


def learnt(biases: Biases, law: Context, noise: Array, rows: Rows) -> Biases:
    """After these rows, with noise (d, d) or (n, d, d) and with what is known of their true contexts."""
    if biases.prior is None:
        return biases
    known = dict(biases.known)
    for part in _parts(*rows.noisy.shape):
        of, truths = rows.of[part], None if rows.true is None else rows.true[part]
        noises = noise[part] if noise.ndim == 3 else noise
        terms = _terms(law, noises, rows.noisy[part] - biases.offset, truths)
        order = np.argsort(of, kind="stable")
        for mine in np.split(order, np.flatnonzero(np.diff(of[order])) + 1):
            device = rows.devices[of[mine[0]]]
            each = State(terms.precision[mine], terms.natural_mean[mine])
            known[device] = _folded(known.get(device, biases.prior), each, biases.walk)
    return replace(biases, known=known)


def _parts(rows: int, dim: int) -> Iterator[slice]:
    """Rows in batches whose matrices fit into memory."""
    size = max(1, CELLS // dim**2)
    return (slice(start, start + size) for start in range(0, rows, size))


def _terms(law: Context, noise: Array, rows: Array, true: Array | None) -> State:
    """What each row says of its bias."""
    dim = rows.shape[1]
    nothing = State(np.zeros((dim, dim)), np.zeros(dim))
    return DENOISER.update(_parameters(law, noise), nothing, rows, true)


def _parameters(law: Context, noise: Array) -> Parameters:
    """The channel as the denoiser wants it told; its prior does not matter for a term."""
    dim = law.mean.size
    floor = EXACT * np.diag(law.cov) * (np.linalg.diagonal(noise) == 0)
    theta = np.zeros(1), np.eye(1)
    channel = Knowledge(law.mean, law.cov, noise + diagonal_matrix(floor), np.eye(dim), *theta)
    return DENOISER.setup(channel, None)


def _folded(state: State, terms: State, walk: Array | None) -> State:
    """A belief after the terms of several rows, in their order."""
    if walk is None:
        return state.plus(State(terms.precision.sum(0), terms.natural_mean.sum(0)))
    for precision, natural_mean in zip(*terms, strict=True):
        mean, cov = moments(state.plus(State(precision, natural_mean)))
        state = _state(mean, cov + walk)
    return state
