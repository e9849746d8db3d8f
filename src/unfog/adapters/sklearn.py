"""A scikit-learn transformer from noisy readings to contexts: regression calibration that learns the bias.

A reading is x = c + bias + noise, with contexts c ~ N(m, C), a bias that each device has of its own, and
noise ~ N(0, N). What comes out is the posterior of c given x and what was learnt before,

    N(m + G (x - m - g),  C - G C),   G = C (C + N + S)^-1,   bias ~ N(g, S),

the same as that of the agents' denoisers (`unfog.agents.denoise`), for use with any library. Its mean as a
regressor is regression calibration (R. J. Carroll, D. Ruppert, L. A. Stefanski, C. M. Crainiceanu,
*Measurement Error in Nonlinear Models*, chapter 4); draws of it are multiple imputation that uses no outcomes
(D. B. Rubin, *Multiple Imputation for Nonresponse in Surveys*). The arithmetic is in
`unfog.adapters.denoising`.
"""

# ruff: noqa: N803, ARG002 (scikit-learn calls readings X, and hands every transformer a y)

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from unfog import validation
from unfog.adapters.denoising import arguments, fit
from unfog.adapters.denoising.arguments import ChannelSettings, Rows
from unfog.adapters.denoising.fit import Fitted
from unfog.adapters.denoising.predict import Block, blocks, endings, write_columns
from unfog.channel.channel import channel as as_channel
from unfog.features import Context
from unfog.maths.arrays import Array
from unfog.validation import InputError, check_keywords


@check_keywords
class Denoiser(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Readings (n, d) in, NaN where a coordinate was lost; contexts out.

    Parameters
    ----------
    noise_cov : covariance of the noise: a number, d variances or (d, d). None: from `true`, else no noise.
    bias_cov : covariance of the biases of devices. None: from `true` or `groups`, else no bias.
    bias : the mean of biases, as far as it is known: it is taken off. None: from `true`, else zero.
    context_mean, context_cov : the law of contexts. None: from the readings, less their noise.
    kind : "exact", a bias stays; "drift", it takes a step of covariance `walk_cov` after each reading.
    output : "mean"; "mean+sd", with d standard deviations behind; "draws", so many `draws` side by side.
    random_state : of the draws.

    Told neither a noise nor a bias nor any true context it changes nothing, but fills what was lost.

    >>> import numpy as np
    >>> from unfog.adapters.sklearn import Denoiser
    >>> rng = np.random.default_rng(0)
    >>> true = rng.normal(size=(200, 1))
    >>> seen = true + rng.normal(size=(200, 1))
    >>> better = Denoiser(noise_cov=1.0).fit_transform(seen)
    >>> round(float(np.mean((seen - true) ** 2)), 2), round(float(np.mean((better - true) ** 2)), 2)
    (1.06, 0.53)
    """

    def __init__(
        self,
        noise_cov: Any = None,
        bias_cov: Any = None,
        context_mean: Any = None,
        context_cov: Any = None,
        *,
        bias: Any = None,
        kind: str = "exact",
        walk_cov: Any = None,
        output: str = "mean",
        draws: int = 5,
        random_state: Any = None,
    ) -> None:
        self.noise_cov = noise_cov
        self.bias_cov = bias_cov
        self.context_mean = context_mean
        self.context_cov = context_cov
        self.bias = bias
        self.kind = kind
        self.walk_cov = walk_cov
        self.output = output
        self.draws = draws
        self.random_state = random_state

    @classmethod
    def from_channel(cls, channel: Any, **settings: Any) -> Self:
        """For a channel that was calibrated: `unfog.calibrate(...).channel`, or a mapping of the same names.

        Contexts count as Gaussian with its mean and covariance. How it moves in time is not used: for a bias
        that walks, tell `kind="drift"` and `walk_cov` among the settings.
        """
        means = getattr(channel, "context_mean", None)
        if isinstance(channel, Mapping):
            means = channel.get("context_mean")
        size = 1 if means is None else max(1, np.size(means))
        parts = as_channel(channel, [str(i) for i in range(size)])
        names = "noise_cov", "bias_cov", "context_mean", "context_cov", "bias"
        return cls(**{**{name: getattr(parts, name) for name in names}, **settings})

    def fit(
        self, X: Any, y: Any = None, *, true: Any = None, groups: Any = None, noise_cov: Any = None
    ) -> Self:
        """Find what is not told, from readings X (n, d).

        `true` (n, d) are true contexts, NaN where they are not known. `groups` are n labels of devices.
        `noise_cov` is that of these rows, in place of the constructor's; it may be one a row: (n, d, d), or
        (n, d) unless n is d. Rows without any have the constructor's, or else the mean of those told.
        """
        noisy = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        rows = _make_rows(noisy, groups, true)
        settings, source = self._start(noisy.shape[1])
        fitted = fit.fit(settings, rows, _read_noise(noise_cov, rows))
        self.settings_, self.source_, self.goes_on_ = settings, source, True
        self._keep(fitted)
        return self

    def partial_fit(
        self, X: Any, y: Any = None, *, true: Any = None, groups: Any = None, noise_cov: Any = None
    ) -> Self:
        """Learn on from more readings. Pieces come to what `fit` of all rows at once comes to.

        A bias that walks is followed with the law of contexts that is told, or that a `fit` before found.
        """
        if not hasattr(self, "fitted_"):
            self.fit(X, true=true, groups=groups, noise_cov=noise_cov)
            self.goes_on_ = self.kind != "drift" or self.settings_.settled(
                _read_noise(noise_cov, _make_rows(self._check_rows(X)))
            )
            return self
        self._learn(_make_rows(self._check_rows(X), groups, true), noise_cov)
        return self

    def transform(self, X: Any, *, groups: Any = None, noise_cov: Any = None) -> Any:
        """The contexts of readings, each taken for a new one; nothing is learnt from them."""
        check_is_fitted(self)
        noisy = self._check_rows(X)
        return self._output(_make_rows(noisy, groups), noise_cov, check_random_state(self.random_state))

    def fit_transform(
        self, X: Any, y: Any = None, *, true: Any = None, groups: Any = None, noise_cov: Any = None
    ) -> Any:
        """`fit`, then `transform` with the same groups and noise."""
        noisy = self.fit(X, true=true, groups=groups, noise_cov=noise_cov)._check_rows(X)
        return self._output(_make_rows(noisy, groups), noise_cov, check_random_state(self.random_state))

    def transform_one(
        self, x: Any, *, noise_cov: Any = None, group: Hashable = None
    ) -> npt.NDArray[np.float64]:
        """The context of one reading (d,) from what was seen before it; then the reading is learnt from.

        With a law of contexts that is told, no `fit` is needed before. After a fit to columns with names, x
        may be a mapping or a pandas Series with these names in any order.
        """
        noisy = self._read_one(x)
        rows = Rows(noisy[None], [arguments.device(group)], np.zeros(1, np.intp), None)
        context: Array = self._output(rows, noise_cov, self.source_)[0]
        self._learn(rows, noise_cov)
        return context

    def context(self, X: Any, *, groups: Any = None, noise_cov: Any = None) -> Context:
        """Mean (n, d) and covariance (n, d, d) of the contexts of readings."""
        check_is_fitted(self)
        noisy = self._check_rows(X)
        mean, cov = np.empty(noisy.shape), np.empty((*noisy.shape, noisy.shape[1]))
        for block in self._blocks(_make_rows(noisy, groups), noise_cov):
            mean[block.rows], cov[block.rows] = block.mean, block.cov
        return Context(mean, cov)

    def bias_of(self, group: Hashable = None) -> Context:
        """Mean (d,) and covariance (d, d) of a device's bias; a new device has that of all."""
        check_is_fitted(self)
        return Context(*self.fitted_.biases.of(arguments.device(group)))

    @property
    def bias_(self) -> Array:
        """The mean of the bias of readings without a group, (d,)."""
        return self.fitted_.biases.of(None)[0]

    @property
    def bias_cov_(self) -> Array:
        """Its covariance, (d, d)."""
        return self.fitted_.biases.of(None)[1]

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """The names of the columns: those of X; with `_sd` behind for deviations, `_draw1` … for draws."""
        names = super().get_feature_names_out(input_features)
        ends = endings(self.output, self.draws)
        return np.array([f"{name}{end}" for end in ends for name in names], dtype=object)

    def __sklearn_tags__(self) -> Any:
        """Gaps are allowed; draws depend on a row's position, which scikit-learn calls non-deterministic."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.non_deterministic = self.output == "draws"
        return tags

    def _learn(self, rows: Rows, noise_cov: Any) -> None:
        if not self.goes_on_:
            allowed = "told with context_mean, context_cov, bias_cov and noise_cov, or found by a fit before"
            actual = "found from the first piece alone, and a bias that walks needs one law of contexts"
            raise InputError("context_mean", actual, allowed)
        self._keep(fit.more(self.fitted_, self.settings_, rows, _read_noise(noise_cov, rows)))

    def _check_rows(self, X: Any) -> Array:
        rows: Array = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        return rows

    def _read_one(self, x: Any) -> Array:
        """Check one reading; without an earlier fit, all that a fit would find must be given."""
        allowed = "the numbers of one reading, NaN where one was lost"
        noisy = arguments.reading(x, getattr(self, "feature_names_in_", None), allowed)
        if noisy.ndim != 1 or not noisy.size or (np.abs(noisy) > validation.LARGEST).any():
            raise InputError("x", x, allowed)
        if not hasattr(self, "fitted_"):
            self._begin(noisy.size)
        if noisy.size != self.n_features_in_:
            raise InputError("x", x, f"{self.n_features_in_} numbers, as were fitted")
        return noisy

    def _begin(self, dim: int) -> None:
        """A fit to no rows at all."""
        if self.context_mean is None or self.context_cov is None:
            raise NotFittedError("call fit first, or tell context_mean and context_cov")
        self.settings_, self.source_ = self._start(dim)
        self.n_features_in_, self.goes_on_ = dim, True
        self._keep(fit.fit(self.settings_, _make_rows(np.empty((0, dim))), None))

    def _start(self, dim: int) -> tuple[ChannelSettings, Any]:
        """The checked settings, and the generator for the draws of `transform_one`."""
        return arguments.channel(self.get_params(), dim), check_random_state(self.random_state)

    def _keep(self, fitted: Fitted) -> None:
        """Store the fitted values under the names that users of scikit-learn expect."""
        self.fitted_ = fitted
        self.context_mean_, self.context_cov_ = fitted.law
        self.noise_cov_ = fitted.noise

    def _blocks(self, rows: Rows, noise_cov: Any) -> Iterator[Block]:
        noise, fitted = _read_noise(noise_cov, rows), self.fitted_
        return blocks(fitted.law, fitted.noise if noise is None else noise, fitted.biases, rows)

    def _output(self, rows: Rows, noise_cov: Any, rng: Any) -> Array:
        n, dim = rows.noisy.shape
        posteriors = self._blocks(rows, noise_cov)
        return write_columns(
            self.output, posteriors, (n, dim), lambda: rng.standard_normal((n, self.draws, dim))
        )


def _read_noise(noise_cov: Any, rows: Rows) -> Array | None:
    """The noise of these rows, if the caller gives one."""
    return None if noise_cov is None else arguments.noises("noise_cov", noise_cov, *rows.noisy.shape)


def _make_rows(noisy: Array, groups: Any = None, true: Any = None) -> Rows:
    beyond = np.abs(noisy) > validation.LARGEST
    if beyond.any():
        row, column = (int(i) for i in np.argwhere(beyond)[0])
        allowed = f"numbers of at most {validation.LARGEST:g}, NaN where one was lost"
        raise InputError("X", f"row {row}, column {column} is {noisy[row, column]:g}", allowed)
    return Rows(noisy, *arguments.labels(groups, len(noisy)), arguments.truths(true, noisy))
