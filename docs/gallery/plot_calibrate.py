"""
Calibrating a sensor from pairs
===============================

For a while a good instrument stood beside the cheap one, which gave 120 *pairs* of a true value and a
reading. ``unfog.calibrate`` finds in them the *channel*: how true values spread, by how much readings are
too high on average (the bias) and how noisy they are. The picture holds the channel against the pairs:
about 95 % of them should be in the band.
"""

import matplotlib.pyplot as plt
import numpy as np

import unfog
from unfog.plotting import COLOURS, DASHES, STYLE

rng = np.random.default_rng(1)
true = rng.normal(20.0, 4.0, (120, 1))
readings = true + 2.5 + rng.normal(0.0, 1.5, true.shape)

found = unfog.calibrate(readings, true)
print(found)  # each number ± its standard error
bias, noise, error = found.bias.item(), found.noise_cov.item() ** 0.5, found.errors.bias.item()
inside = (abs(readings - true - bias) < 1.96 * noise).mean()

# %%
# ``found.channel`` goes straight into a live problem or into ``Denoiser.from_channel``.
plt.rcParams.update(STYLE)
figure, axes = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
line = np.array([8.0, 32.0])
axes.fill_between(
    line,
    line + bias - 1.96 * noise,
    line + bias + 1.96 * noise,
    color=COLOURS[0],
    alpha=0.15,
    linewidth=0,
    label=f"noise, standard deviation {noise:.2f}: {inside:.0%} inside",
)
axes.plot(line, line + bias, color=COLOURS[0], label=f"bias {bias:.2f} ± {1.96 * error:.2f} (95 % interval)")
axes.plot(line, line, color="black", linestyle=DASHES[2], label="a sensor without error")
axes.plot(
    true,
    readings,
    "o",
    color=COLOURS[1],
    markersize=3.5,
    markeredgecolor="0.3",
    markeredgewidth=0.4,
    label="120 pairs",
)
axes.set(xlabel="true temperature, °C", ylabel="reading, °C", xlim=line)
axes.set_title("Bias and noise of a sensor, found from pairs", loc="left", fontsize=9)
axes.legend(loc="upper left", fontsize=8)
plt.show()
