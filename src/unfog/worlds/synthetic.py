"""What the synthetic bandits share: c ~ N(mu_c, Sigma_c), chat = c + gamma* + n, scores phi(a, c)'theta*.

The paper does not say how actions are drawn, mu_c, or the horizon: here actions are drawn once per trial,
normal or uniform on [-1, 1], and mu_c is zero unless given. What a score pays is for the worlds built on
this one: world/gaussian.py, world/logistic.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from unfog import inputs
from unfog.features import Context, FeatureMap, MapBuilder
from unfog.features.product import diagonal
from unfog.features.quadratic import quadratic
from unfog.inputs import InputError, Numbers
from unfog.maths.arrays import Array, Ints, matvec
from unfog.maths.gaussian import from_moments
from unfog.model.knowledge import Knowledge
from unfog.worlds import channel as channels
from unfog.worlds.channel import Channel
from unfog.worlds.problem import Draws, Emission, Truth

FEATURES: dict[str, MapBuilder] = {"quadratic": quadratic, "linear": diagonal}
ACTION_LAWS = ("normal", "uniform")
MOST_DIM, MOST_ACTIONS = 1000, 10**6
ALLOWED = "a map of K actions (..., K, p) and contexts (..., d) to m features (..., K, m)"


class _Roots(NamedTuple):
    """Cholesky factors, made once."""

    context: Array
    bias: Array
    prior: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Synthetic:
    """Gaussian contexts, channel and prior.

    Covariances are a number (times I), a list (the diagonal) or a matrix; means a number or a list. `actions`
    is how many to draw, or the actions themselves, (K, p). `features` is a name or, from Python, a builder
    that turns actions (..., K, p) into a feature map: `unfog.quadrature(phi, dim)` for any function phi.
    The fields from `actual_noise_cov` on are what agents are not told of the channel: see world/channel.py.
    """

    dim: int = 5
    actions: int | Array = 40
    action_law: str = "normal"
    context_mean: Numbers = 0.0
    context_cov: Numbers = 1.0
    noise_cov: Numbers = 1.1
    bias_cov: Numbers = 1.1
    prior_mean: Numbers = 0.0
    prior_cov: Numbers = 0.01
    features: str | MapBuilder = "quadratic"
    actual_noise_cov: Numbers = 0.0
    tails: int = 0
    missing: float = 0.0
    drift_cov: Numbers = 0.0
    drift_rounds: int = 1000
    revealed: float = 1.0
    late: int = 0
    has_bias: ClassVar[bool] = True
    note: ClassVar[str] = ""
    _known: Knowledge = field(init=False, repr=False, compare=False)
    _roots: _Roots = field(init=False, repr=False, compare=False)
    _channel: Channel = field(init=False, repr=False, compare=False)
    _fixed: Array | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check every field, and factorise the covariances."""
        dim = inputs.count("dim", self.dim, most=MOST_DIM)
        inputs.one_of("action_law", self.action_law, ACTION_LAWS)
        if not callable(self.features):
            inputs.one_of("features", self.features, tuple(FEATURES))
        object.__setattr__(self, "_fixed", _fixed_actions(self.actions, dim, not callable(self.features)))
        size = _checked_size(self._one_map, dim, self.arms())
        known = Knowledge(
            context_mean=inputs.vector("context_mean", self.context_mean, dim),
            context_cov=inputs.covariance("context_cov", self.context_cov, dim),
            noise_cov=inputs.covariance("noise_cov", self.noise_cov, dim),
            bias_cov=inputs.covariance("bias_cov", self.bias_cov, dim),
            prior_mean=inputs.vector("prior_mean", self.prior_mean, size),
            prior_cov=inputs.covariance("prior_cov", self.prior_cov, size),
            reward_var=self._reward_var(),
        )
        covs = (known.context_cov, known.bias_cov, known.prior_cov)
        odd = self.drift_cov, self.drift_rounds, self.revealed, self.late
        found = channels.channel(known, self.actual_noise_cov, self.tails, self.missing, *odd)
        object.__setattr__(self, "_known", known)
        object.__setattr__(self, "_channel", found)
        object.__setattr__(self, "_roots", _Roots(*(from_moments(cov[0], cov).root for cov in covs)))

    def _reward_var(self) -> Array | None:
        """The variance of a reward given its score, where that is one number."""
        return None

    def _map(self, actions: Array) -> FeatureMap:
        build = FEATURES[self.features] if isinstance(self.features, str) else self.features
        return build(actions)

    def _action_shape(self) -> tuple[int, int]:
        return inputs.count("actions", self.actions, most=MOST_ACTIONS), self.dim

    def _one_map(self) -> FeatureMap:
        """The features of one set of actions: those given, or all zero."""
        return self._map(np.zeros(self._action_shape()) if self._fixed is None else self._fixed)

    def knowledge(self) -> Knowledge:
        """What agents are told."""
        return self._known

    @property
    def plain(self) -> bool:
        """Whether the channel is as agents are told, and no true context is held back."""
        return self._channel.plain and not self.partial

    @property
    def partial(self) -> bool:
        """Whether some true contexts are never shown, or only later than their rewards."""
        return self._channel.late > 0 or self._channel.revealed < 1

    def arms(self) -> int:
        """How many actions there are."""
        return self._action_shape()[0] if self._fixed is None else self._fixed.shape[0]

    def cells(self) -> int:
        """Numbers that the features of one round keep in memory for a moment."""
        return self._one_map().cells + self._channel.cells()

    def truth_draws(self) -> Mapping[str, Draws]:
        """Normals for theta* and gamma*, and the actions where they are drawn."""
        size = self._known.prior_mean.shape[0]
        draws = {"theta": Draws("normal", (size,)), "bias": Draws("normal", (self.dim,))}
        if self._channel.drift_root is not None:
            draws["walk"] = Draws("normal", (self._channel.drift_rounds, self.dim))
        if self._fixed is None:
            law: Literal["normal", "uniform"] = "uniform" if self.action_law == "uniform" else "normal"
            draws["actions"] = Draws(law, self._action_shape())
        return draws

    def truth(self, draws: Mapping[str, Array]) -> Truth:
        """theta*, gamma* and the actions of a trial."""
        xp = draws["theta"].__array_namespace__()
        theta = xp.asarray(self._known.prior_mean) + matvec(xp.asarray(self._roots.prior), draws["theta"])
        bias = matvec(xp.asarray(self._roots.bias), draws["bias"])
        if self._fixed is not None:
            actions = xp.broadcast_to(xp.asarray(self._fixed), (*bias.shape[:-1], *self._fixed.shape))
        else:
            actions = draws["actions"] if self.action_law == "normal" else 2 * draws["actions"] - 1
        path = channels.walked(self._channel, bias, draws["walk"]) if "walk" in draws else None
        return Truth(theta, bias, self._map(actions), path=path)

    def emit(self, truth: Truth, normals: Array, number: Ints | None = None) -> Emission:
        """A context and its measurement, from the first 2d of the round's normals and the channel's own."""
        xp = normals.__array_namespace__()
        d, own = self.dim, self._channel.normals()
        mean, root = xp.asarray(self._known.context_mean), xp.asarray(self._roots.context)
        context = mean + matvec(root, normals[..., :d])
        bias = truth.bias
        if truth.path is not None and number is not None:
            bias = channels.bias_at(truth.path, number)
        extra = normals[..., 2 * d : 2 * d + own]
        return channels.emit(self._channel, self._known, context, bias, normals[..., d : 2 * d], extra)


def _checked_size(build: Callable[[], FeatureMap], dim: int, arms: int) -> int:
    """How many features there are, after one look at what a map made in Python gives back."""
    try:
        features = build()
        size = features.size
        designs = features.design(Context(np.zeros(dim), np.eye(dim))), features.at(np.zeros(dim))
        found = [(d.scores(np.zeros(size)).shape, d.row(np.zeros((), np.intp)).shape) for d in designs]
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            "features", f"fail on {arms} actions and a context of {dim} ({error!r})", ALLOWED
        ) from error
    if set(found) != {((arms,), (size,))}:
        raise InputError("features", f"give scores and rows of shapes {found[0]}", ALLOWED)
    return size


def _fixed_actions(actions: object, dim: int, named: bool) -> Array | None:
    """The actions where they are given rather than counted; maps made in Python may want any shape."""
    if isinstance(actions, bool | int | float | np.number | str):
        return None
    return inputs.rows(
        "actions", actions, dim if named else None, f"a whole number, or K rows of {dim} numbers"
    )
