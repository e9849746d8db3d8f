"""
How much to trust a reading
===========================

A reading taken for the truth is off by the whole noise. A reading that is ignored leaves one off by all
that true values vary. Denoising draws a reading towards the usual value, the more so the noisier the sensor
is, and is better than both for every size of the noise.

The *context* is the true value behind a reading.
"""

import matplotlib.pyplot as plt
import numpy as np

from unfog.adapters.sklearn import Denoiser
from unfog.plotting import COLOURS, DASHES, STYLE

rng, trials = np.random.default_rng(0), 2000
contexts = rng.normal(0.0, 1.0, (trials, 1))
sizes = np.array([0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0])  # standard deviations of the noise

guesses = {"take it for the truth": [], "denoise it": [], "ignore it": []}
for size in sizes:
    readings = contexts + size * rng.standard_normal(contexts.shape)
    sensor = Denoiser(noise_cov=size**2, context_mean=[0.0], context_cov=1.0)
    found = readings, sensor.fit_transform(readings), np.zeros_like(readings)
    for squares, guess in zip(guesses.values(), found, strict=True):
        each = ((guess - contexts) ** 2).ravel()
        squares.append((each.mean(), 1.96 * each.std() / trials**0.5))

# %%
# 2,000 simulated contexts for each size of the noise; bars are 95 % intervals, mostly smaller than the dots.
plt.rcParams.update(STYLE)
figure, axes = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
for (name, squares), place, mark in zip(guesses.items(), (1, 0, 7), "sod", strict=True):
    mean, reach = np.array(squares).T
    axes.errorbar(sizes, mean, reach, color=COLOURS[place], linestyle=DASHES[place], marker=mark, label=name)
axes.set(
    xlabel="size of the noise, in standard deviations of contexts", ylabel="mean squared error", ylim=(0, 3)
)
axes.set_title("A denoised reading is never worse than trusting or ignoring it", loc="left", fontsize=9)
axes.legend(
    title="what is done with a reading", loc="upper left", bbox_to_anchor=(0.6, 0.9), alignment="left"
)
plt.show()
