"""
The denoiser in front of a regression
=====================================

A regression on noisy readings finds slopes that are too flat, however many rows there are: noise waters
them down. ``Denoiser`` is a scikit-learn transformer. Put in front of the regression, it brings the slopes
back to what is true. Each dot is a slope, its bar a 95 % interval.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from unfog.adapters.sklearn import Denoiser
from unfog.plotting import COLOURS, STYLE

rng, n, slopes = np.random.default_rng(0), 2000, np.array([1.0, -0.5])
noise_cov = np.array([[1.0, 0.6], [0.6, 2.0]])
true = rng.multivariate_normal([5.0, -3.0], [[1.0, -0.5], [-0.5, 2.0]], n)
readings = true + rng.multivariate_normal([0.0, 0.0], noise_cov, n)
outcome = true @ slopes + 0.1 * rng.standard_normal(n)

# %%
# Intervals by the bootstrap: 100 fits to rows that are drawn from the rows, besides the one to all rows.
draws = [np.arange(n), *rng.integers(0, n, (100, n))]
found = {"on readings": [], "behind the denoiser": []}
for rows in draws:
    raw = LinearRegression().fit(readings[rows], outcome[rows])
    pipe = make_pipeline(Denoiser(noise_cov), LinearRegression()).fit(readings[rows], outcome[rows])
    found["on readings"].append(raw.coef_)
    found["behind the denoiser"].append(pipe[-1].coef_)

plt.rcParams.update(STYLE)
figure, axes = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
for shift, (name, each), place, mark in zip((-0.08, 0.08), found.items(), (1, 0), "so", strict=True):
    slope, reach = each[0], 1.96 * np.std(each[1:], axis=0)
    axes.errorbar(np.arange(2) + shift, slope, reach, fmt=mark, color=COLOURS[place], capsize=3, label=name)
    print(name, [f"{one:.2f} ± {wide:.2f}" for one, wide in zip(slope, reach, strict=True)])
axes.hlines(slopes, [-0.3, 0.7], [0.3, 1.3], color="black", linewidth=1.0, label="true slope")
axes.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
axes.set_xticks([0, 1], ["first measurement", "second measurement"])
axes.set(ylabel="slope", xlim=(-0.6, 1.6))
axes.set_title(
    "Slopes on noisy readings are too flat; behind the denoiser they are right", loc="left", fontsize=9
)
axes.legend(loc="upper right")
plt.show()
