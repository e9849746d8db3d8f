"""Estimators of what a policy would have earned, by name.

The weight of a round is w = pi(a) / p(a): with which probability the policy takes the arm that was drawn,
over that with which the logger drew it. An estimate is a ratio of sums over rounds,

    V = sum h num / sum h den,

with weights h of time (evaluation/intervals.py), and den = 1 but for self-normalised estimators. Below, r is
the reward, q(a) what a model of rewards says of arm a, and tau a threshold of weights.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from unfog.evaluation.model import Predicted
from unfog.maths.arrays import Array, Ints, pick

SHARES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 1.0)  # shares of rounds whose weights are not cut


class Case:
    """One policy on one log, as estimators see them."""

    def __init__(
        self,
        policy: Array,
        arm: Ints,
        reward: Array,
        probability: Array,
        predicted: Callable[[], Predicted],
    ) -> None:
        """`policy` (n, K): with which probability it takes each arm; the model is fitted when asked for."""
        self.policy, self.arm, self.reward, self._predicted = policy, arm, reward, predicted
        self.weight: Array = pick(policy, arm) / probability  # (n,)

    @cached_property
    def predicted(self) -> Predicted:
        """Predictions of a cross-fitted model of rewards: no prediction has seen its own reward."""
        return self._predicted()

    @cached_property
    def baseline(self) -> Array:
        """What the model says that the policy earns in each round: sum over arms of pi q, (n,)."""
        return self.predicted.of(self.policy)

    @cached_property
    def surprise(self) -> Array:
        """Each reward less the model's prediction, (n,)."""
        return self.reward - pick(self.predicted.rewards, self.arm)


class Scores(NamedTuple):
    """An estimate, round by round."""

    numerator: Array  # (n,)
    denominator: Array | None = None  # (n,)  None: ones
    wobble: Array | None = (
        None  # (n,)  the influence of each round through the fitted model, on the sum of scores
    )
    note: str = ""  # settings that were chosen from the data, for people


class Estimator(Protocol):
    """A way to estimate the value of a policy."""

    @property
    def name(self) -> str:
        """The name that callers use."""
        ...

    @property
    def note(self) -> str:
        """What it does, and what it needs, in a line."""
        ...

    def scores(self, case: Case) -> Scores:
        """The estimate, round by round."""
        ...


@dataclass(frozen=True)
class Ips:
    """Inverse propensity: the mean of w r.

    Right for any policy of what the logger saw, noise or no noise, if every arm that the policy may take
    could have been drawn. Its price is variance: a few rounds of large weight may decide. D. G. Horvitz and
    D. J. Thompson, *A Generalization of Sampling Without Replacement From a Finite Universe*.
    """

    name = "ips"
    note = "inverse propensity: rewards weighed by pi / p; no model, much variance"

    def scores(self, case: Case) -> Scores:
        """Per round, w r."""
        return Scores(case.weight * case.reward)


@dataclass(frozen=True)
class Clipped:
    """Clipped inverse propensity: the mean of min(w, tau) r.

    What weights lose above tau is a bias: downwards where rewards are positive. `at` is tau; with None it is
    where the squared error is estimated to be least. E. L. Ionides, *Truncated Importance Sampling*.
    """

    at: float | None = None
    name = "clipped"
    note = "inverse propensity with weights cut at a threshold: less variance, and a bias"

    def scores(self, case: Case) -> Scores:
        """min(w, tau) r."""

        def cut(threshold: float) -> Array:
            return np.minimum(case.weight, threshold) * case.reward

        at = choose_cut(case.weight, cut) if self.at is None else self.at
        return Scores(cut(at), note=f"weights cut at {at:.3g}")


@dataclass(frozen=True)
class Snips:
    """Self-normalised inverse propensity: sum of w r over sum of w.

    Weights that happen to be large or small together no longer matter, and a constant added to all rewards
    moves the value by that constant. Its bias is of the order 1 / n. A. Swaminathan and T. Joachims, *The
    Self-Normalized Estimator for Counterfactual Learning*.
    """

    name = "snips"
    note = "self-normalised: the weighted mean of rewards; less variance, a bias of order 1/n"

    def scores(self, case: Case) -> Scores:
        """Per round, w r over w."""
        return Scores(case.weight * case.reward, case.weight)


@dataclass(frozen=True)
class Direct:
    """The direct method: what a model of rewards says that the policy earns.

    Little variance, and all the bias of its model. Rewards depend on true contexts, so the model is fitted,
    and predicts, through the denoiser (evaluation/model.py): one that is fitted on true contexts and applied
    to noisy ones gives far too high values, since a policy seems to know what it only guesses.
    """

    name = "dm"
    note = "direct method: the model's own word; little variance, the model's bias, which no interval shows"

    def scores(self, case: Case) -> Scores:
        """Sum over arms of pi q; its error is that of the model, too."""
        return Scores(case.baseline, wobble=case.predicted.wobble(case.policy))


@dataclass(frozen=True)
class DoublyRobust:
    """Doubly robust: what the model says, and w times what it was off by.

        num = sum over arms of pi q + w (r - q(a))

    Right where probabilities are, however bad the model is; the better the model, the less variance. Where
    models know the past alone, the first few rounds have none and do not count: they would vary with rewards'
    size. M. Dudik, J. Langford and L. Li, *Doubly Robust Policy Evaluation and Learning*.
    """

    name = "dr"
    note = "doubly robust: the model, corrected by weighed residuals; right as ips, less variance"

    def scores(self, case: Case) -> Scores:
        """The model's value plus weighted residuals."""
        score, counts = case.baseline + case.weight * case.surprise, case.predicted.counts
        return Scores(score) if counts.all() else Scores(counts * score, counts)


@dataclass(frozen=True)
class Switch:
    """Switch: doubly robust where weights are small, the model alone where they are large.

    `at` is the weight above which the model is trusted; with None it is where the squared error is estimated
    to be least. Y.-X. Wang, A. Agarwal and M. Dudik, *Optimal and Adaptive Off-policy Evaluation in
    Contextual Bandits*.
    """

    at: float | None = None
    name = "switch"
    note = "doubly robust up to a weight, the model beyond it: less variance, and some of the model's bias"

    def scores(self, case: Case) -> Scores:
        """Without the correction where w > tau."""

        def small_weights(threshold: float) -> Array:
            return np.where(case.weight <= threshold, case.weight, 0.0)

        def cut(threshold: float) -> Array:
            return case.baseline + small_weights(threshold) * case.surprise

        at = choose_cut(case.weight, cut) if self.at is None else self.at
        wobble = case.predicted.wobble(case.policy, small_weights(at))
        return Scores(cut(at), wobble=wobble, note=f"the model alone where weights are above {at:.3g}")


def choose_cut(weight: Array, scores: Callable[[float], Array]) -> float:
    """Where to cut weights off: the quantile of weights with the least estimated squared error.

    Cutting weights at tau reduces variance and adds a bias. An unbiased estimate of the bias is the mean
    difference to scores that are not cut. Its square, less its variance, estimates the squared bias, so

        error(tau) = Var(scores) / n + max(0, mean(difference)^2 - Var(difference) / n)

    is to be smallest (Y.-X. Wang, A. Agarwal and M. Dudik, *Optimal and Adaptive Off-policy Evaluation in
    Contextual Bandits*, choose their threshold so, with a bound in place of the bias). The largest quantile
    cuts nothing.
    """
    uncut, n = scores(np.inf), len(weight)

    def error(threshold: float) -> float:
        cut = scores(threshold)
        difference = uncut - cut
        return float(cut.var() / n + max(0.0, difference.mean() ** 2 - difference.var() / n))

    return float(min(np.unique(np.quantile(weight, SHARES))[::-1], key=error))


ESTIMATORS: dict[str, Estimator] = {
    one.name: one for one in (DoublyRobust(), Snips(), Ips(), Clipped(), Switch(), Direct())
}
