"""The conjugate learner with hindsight."""

from dataclasses import dataclass

from unfog.agents.learn import lifted
from unfog.agents.learn.lifted import Lifted, Prior, Sums
from unfog.agents.parts import Hindsight
from unfog.channel.knowledge import posterior_mean
from unfog.features import Context, FeatureMap
from unfog.maths.arrays import Array, matvec
from unfog.maths.gaussian import Belief


@dataclass(frozen=True, kw_only=True)
class Smoothing(Lifted):
    """The conjugate learner with hindsight: every past round is denoised with what is known of the bias
    today.

    The filter keeps expected features as they were when the bias was hardly known. Given all measurements up
    to now the bias is N(g, S), and the context of every round, this one included, N(v - B g, M^-1 + B S B')
    with v its mean were the bias zero. The rows of all past rounds follow as x = T(B g, M^-1 + B S B') z from
    sums of lifted rows (learn/lifted.py): exactly what computing all of them again would give, at a cost that
    does not grow. The variances of past rewards stay as they were thought to be at the time. Rewards say
    nothing of the bias here: see learn/joint.py.

    Settings
    --------
    `hetero` weighs each reward by the variance it has given its features.

    >>> import unfog
    >>> agent = unfog.Agent(
    ...     "mine", unfog.denoise.Exact(), unfog.learn.Smoothing(), unfog.choose.Ucb()
    ... )
    >>> problem = unfog.GaussianProblem(dim=2, actions=5)
    >>> result = unfog.run(problem, agents=[agent, "naive"], rounds=30, trials=10, seed=0)
    >>> result.regret.isel(round=-1).mean("trial").round(1).values.tolist()  # mean regret, ours first
    [2.9, 7.2]
    """

    name = "smoothing"
    note = "denoises all past rounds anew with what is known of the bias by now"
    cost = 1.6

    def look_back(
        self, parameters: Prior, state: Sums, features: FeatureMap, hindsight: Hindsight, noisy: Array
    ) -> tuple[Belief, Context]:
        """The belief about theta with all past rounds denoised anew, and about this round's context."""
        gain = hindsight.shrinkage.gain
        cov = hindsight.shrinkage.cov + gain @ hindsight.cov @ gain.mT
        projection = lifted.liftable(features).projection(matvec(gain, hindsight.mean), cov)
        mean, root, _ = lifted.posterior(parameters, state, projection)
        context = Context(posterior_mean(hindsight.shrinkage, noisy, hindsight.mean), cov)
        return lifted.as_belief(parameters, mean, root), context
