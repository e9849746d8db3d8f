"""
What denoising does to one reading
==================================

A phone says 11,000 steps, and its error has a standard deviation of 1,500 steps. Most days have around
7,000 steps. A day with fewer steps and an error upwards is then more likely than a day with all of them.
Denoising weighs both: what is believed lies between the usual day and the reading, and is surer than
either.
"""

import matplotlib.pyplot as plt
import numpy as np

from unfog.adapters.sklearn import Denoiser
from unfog.plotting import COLOURS, DASHES, STYLE

usual, spread, noise, reading = 7000.0, 2000.0, 1500.0, 11000.0
sensor = Denoiser(noise_cov=noise**2, context_mean=[usual], context_cov=spread**2)
belief = sensor.fit([[reading]]).context([[reading]])
mean, sd = belief.mean.item(), belief.cov.item() ** 0.5
print(f"believed: {mean:,.0f} ± {1.96 * sd:,.0f} steps (95 % interval)")

# %%
# The three laws over the true number of steps. The reading alone says "11,000, give or take the noise".
laws = {"usual days": (usual, spread), "the reading alone": (reading, noise), "what is believed": (mean, sd)}
sides = {"usual days": "right", "the reading alone": "left", "what is believed": "center"}
steps = np.linspace(1000, 16000, 400)

plt.rcParams.update(STYLE)
figure, axes = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
for (name, (middle, wide)), place in zip(laws.items(), (7, 1, 0), strict=True):
    density = 1000 * np.exp(-(((steps - middle) / wide) ** 2) / 2) / (wide * np.sqrt(2 * np.pi))
    axes.plot(steps, density, color=COLOURS[place], linestyle=DASHES[place])
    axes.fill_between(steps, density, color=COLOURS[place], alpha=0.12, linewidth=0)
    axes.annotate(
        f"{name}\n{middle:,.0f} ± {1.96 * wide:,.0f}",
        (middle, density.max()),
        ({"right": -12, "left": 12, "center": 0}[sides[name]], 4),
        textcoords="offset points",
        ha=sides[name],
        color=COLOURS[place],
    )
axes.set(xlabel="true steps of the day", ylabel="probability density, per 1,000 steps", ylim=(0, 0.42))
axes.set_title("A high reading is drawn towards the usual day", loc="left", fontsize=9)
axes.xaxis.set_major_formatter("{x:,.0f}")
plt.show()
