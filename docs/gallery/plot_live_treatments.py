"""
Three treatments, decided one by one
====================================

A clinic chooses among three treatments by two noisy measurements, and learns from what happens: 400 live decisions.
``decide`` says what to do and how probable that choice was; ``reward`` reports how it went.
At first all three treatments are tried, and with time patients get the one that suits their true state.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unfog
from unfog.look import COLOURS, STYLE

rng, patients = np.random.default_rng(2), 400
channel = {"context_mean": [140, 60], "context_cov": [225, 100], "noise_cov": [150, 60], "bias_cov": [25, 9]}
true = rng.normal([140, 60], [15, 10], (patients, 2))  # pressure and pulse
seen = true + [6, -3] + rng.normal(0, [12, 8], (patients, 2))
arms = ["rest", "tablet", "infusion"]
pressure, pulse = ((true - [140, 60]) / [15, 10]).T
pays = np.stack([0.3 * pulse, pressure, -pressure - 0.5 * pulse], axis=1)  # what each treatment would bring

# %%
# Every decision is on disk before it is answered; here the disk is a temporary folder.
best = []
with tempfile.TemporaryDirectory() as folder, unfog.live.open(Path(folder, "clinic.unfog"), sync="normal") as store:
    clinic = store.problem("treatment", context=["pressure", "pulse"], arms=arms, channel=channel, seed=7)
    for i in range(patients):
        decision = clinic.decide(seen[i])
        clinic.reward(decision.id, pays[i, arms.index(decision.arm)] + 0.5 * rng.standard_normal())
        best.append(decision.probabilities[arms[pays[i].argmax()]])
    print(decision.arm, decision.probabilities, decision.denoised)

# %%
# One clinic. Dots are patients; the line is the mean of 40 patients at a time with its 95 % interval.
blocks = np.array(best).reshape(-1, 40)
mean, reach = blocks.mean(1), 1.96 * blocks.std(1, ddof=1) / 40**0.5
plt.rcParams.update(STYLE)
figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
axes.plot(np.arange(patients), best, ".", color="0.75", markersize=3)
axes.errorbar(np.arange(20, patients, 40), mean, reach, color=COLOURS[0], marker="o", capsize=2.5)
axes.axhline(1 / 3, color="black", linestyle=":", linewidth=1.0)
axes.text(patients, 1 / 3 - 0.02, "by lot: 1/3", ha="right", va="top")
axes.set(xlabel="patient", ylabel="probability of the treatment\nthat is best for this patient", ylim=(0, 1))
axes.set_title("From trying all treatments to giving the right one", loc="left", fontsize=9)
plt.show()
