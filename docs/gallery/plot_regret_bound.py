"""
Regret, and what theory promises
================================

*Regret* is the reward lost so far, against one who knows the sensor's bias and what each choice pays.
Theory bounds it: averaged over such worlds, ``alg2`` loses no more than the dotted line. (It is shown the
true value behind each reading after its reward.) Loss and bound per round both fall as rounds go by. The
bound is far above the loss: it is a guarantee, not a forecast.
"""

import matplotlib.pyplot as plt
import numpy as np

import unfog
from unfog.lab.labels import LOOKS
from unfog.plotting import DASHES, STYLE
from unfog.theory import bounds
from unfog.theory.conditions import linear_case

rounds, d = 400, 3
matrices = np.random.default_rng(0).normal(size=(8, d, d)) / 6  # eight arms: the reward is theta'G c
problem = unfog.GaussianProblem(
    dim=d,
    actions=matrices,
    features="matrix",
    context_cov=[0.2, 0.4, 0.6],
    noise_cov=0.5,
    bias_cov=0.5,
    prior_cov=1.0,
    reward_var=1.0,
)
result = unfog.run(problem, agents=["alg2"], rounds=rounds, trials=100, seed=0)
case = linear_case(problem.knowledge(), matrices)
horizons = np.arange(10, rounds + 1, 10)
bound = np.array([bounds.theorem_2(case, int(horizon)).total for horizon in horizons])

# %%
# The mean of 100 worlds with its 95 % band, and the bound for each number of rounds, both divided by it.
regret = result["regret"].sel(agent="alg2")
mean, reach = regret.mean("trial"), 1.96 * regret.std("trial", ddof=1) / 100**0.5
print(f"after {rounds} rounds: {mean[-1].item():.1f} ± {reach[-1].item():.1f} lost, at most {bound[-1]:.0f}")

plt.rcParams.update(STYLE)
figure, axes = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
t = result["round"].values
axes.plot(horizons, bound / horizons, color="black", linestyle=DASHES[2], label="at most, by theory")
axes.plot(t, mean / t, label="lost by alg2", **LOOKS["alg2"].line())
axes.fill_between(
    t, (mean - reach) / t, (mean + reach) / t, color=LOOKS["alg2"].colour, alpha=0.2, linewidth=0
)
axes.set(
    xlabel="rounds", ylabel="reward lost per round, so far", xscale="log", yscale="log", xlim=(10, rounds)
)
axes.set_title("The loss per round falls, and so does the bound on it", loc="left", fontsize=9)
axes.set_xticks([10, 30, 100, 300], ["10", "30", "100", "300"])
axes.set_yticks([0.1, 1, 10], ["0.1", "1", "10"])
axes.legend(loc="center right")
plt.show()
