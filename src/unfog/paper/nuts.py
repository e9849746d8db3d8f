"""The logistic posterior by NUTS, and how far draws are from it. Nothing here is shared with the learners.

    log p(theta) = -(theta - mu)'P(theta - mu) / 2 + sum_i log sigmoid((2 r_i - 1) z_i) + constant

with z_i = x_i'theta, or, where the context is averaged out, x_i'theta / sqrt(1 + pi/8 theta'C_i theta).
M. D. Hoffman and A. Gelman, *The No-U-Turn Sampler*, as BlackJAX has it, with Stan's warm-up (windows in
which step size and a dense metric are adapted), in double precision, many chains side by side.

Means and covariances are compared in posterior standard deviations, and in units of their Monte Carlo errors,
z: of the coordinates of theta and along the principal axes of the posterior, for a narrow direction can hide
among coordinates. Errors come from the differences between independent pieces: replicas, or batches of NUTS.
"""

from functools import partial
from typing import Any, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.adaptation.base import get_filter_adapt_info_fn
from blackjax.diagnostics import effective_sample_size, potential_scale_reduction

from unfog.maths.arrays import Array
from unfog.maths.statistics import standard_error
from unfog.simulation.engines.jax import keep_compiled_programs

ACCEPTED = 0.9  # wanted rate of acceptance: short and safe steps
WARMUP = 500
BATCHES = 20  # of a chain, long enough to be all but independent


class Target(NamedTuple):
    """The data, and the prior N(prior_mean, prior_cov)."""

    rows: Array  # (n, m)
    rewards: Array  # (n,)  0 or 1
    prior_mean: Array  # (m,)
    prior_cov: Array  # (m, m)
    spreads: Array | None = None  # (n, m, m)  Cov(phi), where the context is averaged out


class Moments(NamedTuple):
    """Mean and covariance, and all their entries with Monte Carlo errors."""

    mean: Array  # (m,)
    cov: Array  # (m, m)
    entries: Array  # (k,)  means of coordinates and along axes, then variances and covariances of both
    errors: Array  # (k,)


class Reference(NamedTuple):
    """NUTS's draws and moments, and whether to trust them."""

    draws: Array  # (chains, draws, m)
    axes: Array  # (m, m)  principal axes, a column each, the widest last
    moments: Moments
    rhat: float  # the largest split R-hat over coordinates
    ess: float  # the smallest effective sample size over coordinates
    divergences: int


class Comparison(NamedTuple):
    """A learner against NUTS; means are in posterior standard deviations, spreads in ratios of them."""

    learner: str
    draws: Array  # (replicas, m)
    shifts: Array  # (m,)  of means
    spreads: Array  # (m,)  of standard deviations
    along: Array  # (m,)  of standard deviations along the principal axes
    volume: float  # (det ratio)^(1 / 2m)
    z: float  # the largest of all entries
    z_long: float | None  # the same for the long run of a sampler

    def numbers(self) -> dict[str, float | None]:
        """A summary in a few numbers."""
        return {
            "mean_rms": float(np.sqrt(np.mean(self.shifts**2))),
            "mean_max": float(np.abs(self.shifts).max()),
            "spread": float(np.median(self.spreads)),
            "narrowest": float(self.along.min()),
            "widest": float(self.along.max()),
            "volume": self.volume,
            "z": self.z,
            "z_long": self.z_long,
        }


def log_density(target: Target, theta: Any) -> Any:
    """The logarithm of the posterior's density, but for a constant: (m,) -> ()."""
    deviation = theta - target.prior_mean
    logits = target.rows @ theta
    if target.spreads is not None:
        logits = logits / jnp.sqrt(1 + jnp.pi / 8 * jnp.einsum("i,nij,j->n", theta, target.spreads, theta))
    likelihood = jax.nn.log_sigmoid((2 * target.rewards - 1) * logits).sum()
    return likelihood - 0.5 * deviation @ jnp.linalg.solve(target.prior_cov, deviation)


def reference(target: Target, rng: np.random.Generator, *, chains: int, draws: int) -> Reference:
    """Draw `draws` positions of every chain after its warm-up; chains start from draws of the prior."""
    keep_compiled_programs()
    normals = rng.standard_normal((chains, len(target.prior_mean)))
    starts = target.prior_mean + normals @ np.linalg.cholesky(target.prior_cov).T
    number = int(rng.integers(2**32))
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(number), chains)
        positions, divergent = jax.tree.map(np.asarray, _run_chains(target, keys, starts, draws))
        halves = np.concat(np.array_split(positions[:, draws % 2 :], 2, 1))
        rhat, ess = potential_scale_reduction(halves).max(), effective_sample_size(positions).min()
    axes = np.linalg.eigh(np.cov(positions.reshape(-1, positions.shape[-1]).T))[1]
    batches = np.concat(np.array_split(positions[:, draws % BATCHES :], BATCHES, 1))
    return Reference(positions, axes, moments(batches, axes), float(rhat), float(ess), int(divergent.sum()))


@partial(jax.jit, static_argnums=3)
def _run_chains(target: Target, keys: Any, starts: Any, draws: int) -> Any:
    """All chains: positions (chains, draws, m) and whether the way to each diverged (chains, draws)."""
    return jax.vmap(partial(_run_chain, target, draws))(keys, starts)


def _run_chain(target: Target, draws: int, key: Any, start: Any) -> Any:
    """One chain: its parameters are adapted during the warm-up and fixed after it."""
    density = partial(log_density, target)
    warmup_key, chain_key = jax.random.split(key)
    adapt = blackjax.window_adaptation(
        blackjax.nuts,
        density,
        is_mass_matrix_diagonal=False,
        target_acceptance_rate=ACCEPTED,
        adaptation_info_fn=get_filter_adapt_info_fn(),
    )
    (state, parameters), _ = adapt.run(warmup_key, start, WARMUP)
    kernel = blackjax.nuts(density, **parameters)

    def step(state: Any, key: Any) -> tuple[Any, tuple[Any, Any]]:
        state, info = kernel.step(key, state)
        return state, (state.position, info.is_divergent)

    return jax.lax.scan(step, state, jax.random.split(chain_key, draws))[1]


def moments(draws: Array, axes: Array) -> Moments:
    """The moments of draws (pieces, draws, m) whose pieces are independent."""
    size = draws.shape[-1]
    centre, (row, column) = draws.mean((0, 1)), np.triu_indices(size)
    deviations = draws - centre
    means, products = deviations.mean(1), deviations.mT @ deviations / draws.shape[1]
    along_axes = axes.T @ products @ axes
    pieces = np.concat([means, means @ axes, products[:, row, column], along_axes[:, row, column]], 1)
    entries = pieces.mean(0)
    entries[: 2 * size] += np.concat([centre, centre @ axes])
    return Moments(centre, products.mean(0), entries, standard_error(pieces))


def compare(name: str, against: Reference, draws: Array, long: Array | None = None) -> Comparison:
    """Independent draws (replicas, m), and those of a long run (replicas, thetas, m), against NUTS."""
    own, truth, axes = moments(draws[:, None], against.axes), against.moments, against.axes
    scale = np.sqrt(np.diag(truth.cov))
    variances = [np.diag(axes.T @ cov @ axes) for cov in (own.cov, truth.cov)]
    logs = [np.linalg.slogdet(cov)[1] for cov in (own.cov, truth.cov)]
    return Comparison(
        name,
        draws,
        shifts=(own.mean - truth.mean) / scale,
        spreads=np.sqrt(np.diag(own.cov)) / scale,
        along=np.sqrt(variances[0] / variances[1]),
        volume=float(np.exp((logs[0] - logs[1]) / (2 * len(scale)))),
        z=largest_z(own, truth),
        z_long=None if long is None else largest_z(moments(long, axes), truth),
    )


def largest_z(first: Moments, second: Moments) -> float:
    """The largest difference of an entry in units of its Monte Carlo error."""
    return float(np.max(np.abs(first.entries - second.entries) / np.hypot(first.errors, second.errors)))
