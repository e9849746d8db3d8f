"""
A reading that cannot be true
=============================

Some sensors now and then report nonsense. The usual denoiser believes a fixed share of every reading,
however absurd. The one that expects outliers (that of the agent ``robust``) follows a plausible reading,
and believes less and less of one that gets more and more absurd.

The *context* is the true value behind a reading.
"""

import matplotlib.pyplot as plt
import numpy as np

import unfog
from unfog.plotting import COLOURS, DASHES, STYLE

problem = unfog.GaussianProblem(dim=1, actions=5, context_cov=1.0, noise_cov=0.5, bias_cov=0.01)
readings, found = np.linspace(0.0, 12.0, 121), {}
for name, denoiser in {
    "expects no outliers": unfog.denoise.Exact(),
    "expects outliers": unfog.denoise.Robust(nu=3.0),
}.items():
    setup = denoiser.setup(problem.knowledge(), None)
    beliefs = [denoiser.predict(setup, denoiser.start(setup), np.array([reading])) for reading in readings]
    mean = np.array([belief.mean.item() for belief in beliefs])
    found[name] = mean, 1.96 * np.array([belief.cov.item() ** 0.5 for belief in beliefs])
    print(f"{name}: a reading of 10 is taken for {mean[100]:.2f} ± {found[name][1][100]:.2f}")

# %%
# Contexts lie around 0 with standard deviation 1. Bands are 95 % intervals of the belief after one reading.
plt.rcParams.update(STYLE)
figure, axes = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
for (name, (mean, reach)), place in zip(found.items(), (0, 6), strict=True):
    axes.plot(readings, mean, color=COLOURS[place], linestyle=DASHES[place], label=name)
    axes.fill_between(readings, mean - reach, mean + reach, color=COLOURS[place], alpha=0.15, linewidth=0)
axes.axhspan(-1.96, 1.96, color="0.93", linewidth=0, zorder=0)
axes.text(11.9, -1.85, "95 % of all contexts", ha="right", color="0.35", fontsize=8)
axes.set(xlabel="the reading", ylabel="what is believed of the context", xlim=(0, 12), ylim=(-2.2, 10))
axes.set_title("One absurd reading should not move the belief far", loc="left", fontsize=9)
axes.legend(loc="upper left")
plt.show()
