"""
How many trials are enough
==========================

A simulated comparison needs many *trials*, worlds that are drawn anew. With too few of them chance decides,
and too many waste time. With ``target_se=0.02`` a run goes on until each ratio of regrets is known to a
standard error of 0.02, and then stops by itself. The picture looks back at such a run: intervals get
narrower as trials come in.

*Regret* is the reward lost, against one who knows the sensor's bias and what each choice pays.
"""

import matplotlib.pyplot as plt
import numpy as np

import unfog
from unfog.lab.labels import LOOKS
from unfog.plotting import STYLE

result = unfog.run(
    "fig1-gaussian", agents=["alg1", "naive", "oracle"], rounds=50, seed=0, target_se=0.02, reference="oracle"
)
print(unfog.table(result))
final = result["regret"].isel(round=-1)
trials = final.sizes["trial"]

# %%
# The ratio over the first n trials, with its 95 % interval (standard error by the delta method).
numbers = np.arange(20, trials + 1, 5)
oracle = final.sel(agent="oracle").values

plt.rcParams.update(STYLE)
figure, axes = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
for agent, words in {"naive": "naive: trusts readings", "alg1": "alg1: denoises"}.items():
    lost = final.sel(agent=agent).values
    ratio = np.array([lost[:n].mean() / oracle[:n].mean() for n in numbers])
    errors = [
        (lost[:n] - r * oracle[:n]).std(ddof=1) / n**0.5 / oracle[:n].mean()
        for n, r in zip(numbers, ratio, strict=True)
    ]
    axes.plot(numbers, ratio, label=words, **LOOKS[agent].line())
    low, high = ratio - 1.96 * np.array(errors), ratio + 1.96 * np.array(errors)
    axes.fill_between(numbers, low, high, color=LOOKS[agent].colour, alpha=0.15, linewidth=0)
axes.axhline(1.0, color="0.5", linewidth=0.8)
axes.set(
    xlabel="trials so far",
    ylabel="regret, as a ratio to that of the agent\nthat is told the bias",
    xlim=(20, trials),
)
axes.set_title(
    f"The run stopped after {trials} trials: both ratios are known well enough", loc="left", fontsize=9
)
axes.legend(loc="upper right")
plt.show()
