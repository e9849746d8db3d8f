"""
Values that cannot be negative
==============================

The true values here are never below zero: most are small, a few are large, as waiting times and prices are.
A denoiser that takes them for Gaussian turns low readings into negative values, which cannot be. One that
is given a sample of true values from the past (agent ``empirical``) knows their shape and stays where
values are.
"""

import matplotlib.pyplot as plt
import numpy as np

import unfog
from unfog.channel.knowledge import Knowledge
from unfog.plotting import COLOURS, DASHES, STYLE

rng = np.random.default_rng(1)
true = rng.gamma(1.0, 1.0, (300, 1))  # a study with 300 pairs of a true value and a reading
found = unfog.calibrate(true + 0.8 * rng.standard_normal((300, 1)), true)
known = Knowledge(
    found.context_mean,
    found.context_cov,
    found.noise_cov,
    found.bias_cov,
    prior_mean=np.zeros(2),
    prior_cov=np.eye(2),
    sample=found.contexts,
)

# %%
# New values, not those of the study: 300 readings, and what each denoiser makes of them.
new = rng.gamma(1.0, 1.0, (300, 1))
readings = new + 0.8 * rng.standard_normal((300, 1)) - found.bias
denoisers = {
    "taken for Gaussian": (unfog.denoise.Exact(), 1),
    "by the sample": (unfog.denoise.Empirical(), 0),
}

plt.rcParams.update(STYLE)
figure, axes = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
axes.plot(readings, new, ".", color="0.7", markersize=3, label="true value")
for name, (denoiser, place) in denoisers.items():
    setup = denoiser.setup(known, None)
    guess = np.array([denoiser.predict(setup, denoiser.start(setup), reading).mean for reading in readings])
    squares = (guess - new) ** 2
    said = f"{name}: mean squared error {squares.mean():.2f} ± {1.96 * squares.std() / 300**0.5:.2f}"
    order = np.argsort(readings.ravel())
    axes.plot(readings[order], guess[order], color=COLOURS[place], linestyle=DASHES[place], label=said)
axes.axhline(0.0, color="black", linewidth=0.6)
axes.set(xlabel="the reading", ylabel="true value, and what it is taken for")
axes.set_title("Past true values keep the denoised ones where values can be", loc="left", fontsize=9)
axes.legend(loc="upper left")
plt.show()
