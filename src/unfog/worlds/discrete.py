"""What can be known of a context that is one of a finite sample: Bayes' rule over its atoms.

One who knows the channel as it is, gamma_t included though not what was lost, has the posterior weights

    w_i ~ p(chat - gamma_t - u_i),    p the density of the noise in the coordinates that were measured,

Gaussian or Student's t. The Gaussian belief of `channel.best` has the sample's first two moments right and
its shape wrong. Mean and covariance stand for the posterior here: exact for all that hangs on them alone,
expected features of the second degree at most and rewards with Gaussian noise.
"""

from typing import NamedTuple

from unfog.channel.knowledge import masked_inverse
from unfog.features import Context
from unfog.maths import mixture
from unfog.maths.arrays import Array
from unfog.worlds.channel import Channel
from unfog.worlds.problem import Emission


class Sample(NamedTuple):
    """The atoms, and the channel they are seen through."""

    points: mixture.Points
    channel: Channel
    precision: Array  # (d, d)  of the noise as it is

    def posterior(self, emission: Emission, bias: Array) -> Context:
        """Given a round's measurement, and the bias that all rounds have where it does not drift."""
        noisy = emission.noisy
        xp = noisy.__array_namespace__()
        precision = xp.asarray(self.precision, dtype=noisy.dtype)
        if emission.mask is not None:
            precision = masked_inverse(xp.asarray(self.channel.noise_cov, dtype=noisy.dtype), emission.mask)
        seen = noisy - (bias if emission.bias is None else emission.bias)
        return Context(
            *mixture.points_posterior(
                mixture.like(self.points, noisy), precision, seen, float(self.channel.tails)
            )
        )


def sample(points: Array, channel: Channel) -> Sample:
    """Of these atoms (n, d)."""
    xp = channel.noise_cov.__array_namespace__()
    return Sample(mixture.points(points), channel, xp.linalg.inv(channel.noise_cov))
