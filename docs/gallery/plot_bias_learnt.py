"""
How the bias of a sensor is learnt
==================================

A thermometer reads 1.3 °C too high, and nobody says so: this constant error is its *bias*. No true
temperature is ever shown; known are only how true temperatures spread and how noisy a reading is. Readings
that lie too high on average give the bias away, and the belief about it closes in on the truth.
"""

import matplotlib.pyplot as plt
import numpy as np

from unfog.adapters.sklearn import Denoiser
from unfog.plotting import COLOURS, DASHES, STYLE

rng, bias, rounds = np.random.default_rng(3), 1.3, 400
readings = rng.normal(20.0, 2.0, rounds) + bias + rng.normal(0.0, 1.0, rounds)

sensor = Denoiser(noise_cov=1.0, bias_cov=2.0**2, context_mean=[20.0], context_cov=2.0**2)
means, deviations = [], []
for reading in readings:
    sensor.transform_one([reading])
    means.append(sensor.bias_.item())
    deviations.append(sensor.bias_cov_.item() ** 0.5)
mean, reach = np.array(means), 1.96 * np.array(deviations)
print(f"after {rounds} readings: {mean[-1]:.2f} ± {reach[-1]:.2f} °C (95 % interval), and it is {bias} °C")

# %%
# One sensor, one run of 400 readings. The band is the 95 % interval of what is believed at that time.
plt.rcParams.update(STYLE)
figure, axes = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
number = np.arange(1, rounds + 1)
axes.fill_between(number, mean - reach, mean + reach, color=COLOURS[0], alpha=0.2, linewidth=0)
axes.plot(number, mean, color=COLOURS[0], label="believed bias, with its 95 % band")
axes.axhline(bias, color=COLOURS[2], linestyle=DASHES[2], label="true bias")
axes.set(xlabel="readings so far", ylabel="bias of the thermometer, °C", xscale="log", xlim=(1, rounds))
axes.set_xticks([1, 3, 10, 30, 100, 300], ["1", "3", "10", "30", "100", "300"])
axes.minorticks_off()
axes.set_title("Readings alone show how far a sensor is off", loc="left", fontsize=9)
axes.legend(loc="lower right")
plt.show()
