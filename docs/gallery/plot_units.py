"""
Many small sensors, each with a bias of its own
===============================================

Twelve phones count steps, and each is off by a constant amount of its own, its *bias*. Nobody tells by how
much. ``unit=`` says whose reading it is: each phone's bias is learnt apart, while what is learnt about
rewards is shared by all. After 40 readings of each phone the believed biases lie near the true ones, and 11
of the 12 intervals hold them.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unfog
from unfog.plotting import COLOURS, STYLE

rng, phones, days = np.random.default_rng(1), 12, 40
bias = rng.normal(0.0, 1500.0, phones)
channel = {"context_mean": [7000], "context_cov": [2000**2], "noise_cov": [1000**2], "bias_cov": [1500**2]}

# %%
# Live decisions for all phones in turn, kept in a temporary folder.
with (
    tempfile.TemporaryDirectory() as folder,
    unfog.live.open(Path(folder, "walks.unfog"), sync="normal") as store,
):
    walks = store.problem("walks", context=["steps"], arms=["send", "wait"], channel=channel, seed=7)
    for _ in range(days):
        for phone in range(phones):
            steps = rng.normal(7000, 2000)
            decision = walks.decide([steps + bias[phone] + rng.normal(0, 1000)], unit=f"phone {phone}")
            pays = (7000 - steps) / 2000 if decision.arm == "send" else 0.0
            walks.reward(decision.id, pays + rng.normal(0, 0.5))
    beliefs = [walks.belief(unit=f"phone {phone}") for phone in range(phones)]

# %%
# Bars are 95 % intervals. On the dotted line a bias is believed to be what it is.
mean = np.array([belief["bias"].item() for belief in beliefs])
reach = 1.96 * np.array([belief["bias_sd"].item() for belief in beliefs])
print(f"{(abs(mean - bias) < reach).sum()} of {phones} intervals hold the true bias")
plt.rcParams.update(STYLE)
figure, axes = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
axes.errorbar(bias, mean, reach, fmt="o", color=COLOURS[0], capsize=2.5)
ends = np.array([bias.min() - 400, bias.max() + 400])
axes.plot(ends, ends, color="black", linestyle=":", linewidth=1.0)
axes.set(xlabel="true bias of a phone, steps", ylabel="bias as believed, steps")
axes.xaxis.set_major_formatter("{x:,.0f}")
axes.yaxis.set_major_formatter("{x:,.0f}")
axes.set_title(f"Twelve phones: how far each is off, after {days} readings of it", loc="left", fontsize=9)
plt.show()
