"""
Three treatments, decided one by one
====================================

A clinic chooses among three treatments by two noisy measurements, and learns from what happens: 600 live
decisions. ``decide`` says what to do and how probable that choice was; ``reward`` reports how it went. At
first treatments are tried out; with time more patients get the one that suits their true state, as often as
such measurements allow.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unfog
from unfog.plotting import COLOURS, STYLE

rng, patients, arms = np.random.default_rng(2), 600, ["rest", "tablet", "infusion"]
channel = {"context_mean": [140, 60], "context_cov": [225, 100], "noise_cov": [150, 60], "bias_cov": [25, 9]}
true = rng.normal([140, 60], [15, 10], (patients, 2))  # pressure and pulse
seen = true + np.array([6, -3]) + rng.normal(0, [12, 8], (patients, 2))


def pays(pressure, pulse):
    """What each treatment brings on average."""
    high, fast = (pressure - 140) / 15, (pulse - 60) / 10
    return np.array([0.3 * fast, high, -high - 0.5 * fast])


# %%
# Every decision is kept in a file before it is answered; here the file is in a temporary folder.
chance, reachable = [], []
with tempfile.TemporaryDirectory() as folder, unfog.live.open(Path(folder, "clinic"), sync="normal") as store:
    clinic = store.problem("treatment", context=["pressure", "pulse"], arms=arms, channel=channel, seed=7)
    for i in range(patients):
        decision, brings = clinic.decide(seen[i]), pays(*true[i])
        clinic.reward(decision.id, brings[arms.index(decision.arm)] + 2.0 * rng.standard_normal())
        chance.append(decision.probabilities[arms[brings.argmax()]])
        reachable.append(pays(**decision.denoised).argmax() == brings.argmax())

# %%
# One clinic: means over 100 patients at a time with 95 % intervals.
blocks = np.array(chance).reshape(-1, 100)
reach = 1.96 * blocks.std(1, ddof=1) / 100**0.5
plt.rcParams.update(STYLE)
figure, axes = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
axes.errorbar(np.arange(50, patients, 100), blocks.mean(1), reach, color=COLOURS[0], marker="o", capsize=2.5)
for level, words in ((1 / 3, "by lot"), (np.mean(reachable), "as well as the measurements allow")):
    axes.axhline(level, color="black", linestyle=":", linewidth=1.0)
    axes.text(8, level + 0.01, words, va="bottom")
axes.set(
    xlabel="patient",
    ylabel="probability of the treatment\nthat is best for the patient",
    xlim=(0, patients),
    ylim=(0, 1),
)
axes.set_title("The right treatment, more and more often", loc="left", fontsize=9)
plt.show()
