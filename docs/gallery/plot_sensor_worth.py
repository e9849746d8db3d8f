"""
What a better sensor is worth
=============================

Noise cannot be taken out of a log of past decisions. But more noise can be added, and what that costs can
be measured. ``unfog.sensor_worth`` follows the curve back, from more noise to less and to none. What a
decision earns without noise, less what it earns with the sensor as it is, is what a perfect sensor would be
worth.
"""

import matplotlib.pyplot as plt
import numpy as np

import unfog
from unfog.plotting import COLOURS, DASHES, STYLE

rng, n = np.random.default_rng(0), 2000
true = rng.normal(0.0, 1.0, (n, 1))
seen = true + rng.normal(0.0, 0.8, (n, 1))
arm = rng.integers(0, 2, n)  # drawn by lot
log = {
    "blood sugar": seen[:, 0],
    "arm": np.where(arm, "treat", "wait"),
    "reward": arm * true[:, 0] + 0.5 * rng.standard_normal(n),
}
pairs = unfog.calibrate(seen[:500], true[:500])  # a study of the sensor
found = unfog.sensor_worth(
    log, columns={"context": ["blood sugar"]}, probability=0.5, channel=pairs.channel
).sel(sensor="all")
curve = found.sel(curve=found["used"])
perfect = curve.sel(less=-1.0)
worth, error = perfect["worth"].item(), perfect["worth_se"].item()
print(f"a perfect sensor: {worth:+.3f} ± {1.96 * error:.3f} a decision (95 % interval)")

# %%
# 2,000 decisions. Bars and band are 95 % intervals; all points rest on the same decisions. This log is made
# up, so that the truth is known: a perfect sensor is worth 0.087 a decision.
plt.rcParams.update(STYLE)
figure, axes = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
ends = [found["value"] - found["value_low"], found["value_high"] - found["value"]]
measured = {"color": "black", "marker": "o", "capsize": 2.5, "label": "measured, with noise added"}
axes.errorbar(1 + found["level"], found["value"], ends, **measured)
less = np.append(1 + curve["less"], 1.0)  # back from the sensor as it is
low, middle, high = (
    np.append(curve[f"expected{end}"], found[f"value{end}"][0]) for end in ("_low", "", "_high")
)
axes.plot(less, middle, color=COLOURS[6], linestyle=DASHES[1], label="extrapolated")
axes.fill_between(less, low, high, color=COLOURS[6], alpha=0.15, linewidth=0)
axes.axvline(1.0, color="0.5", linewidth=0.8)
axes.text(1.03, 0.44, "the sensor as it is")
axes.set(xlabel="variance of the noise, times the sensor's", ylabel="reward per decision", xlim=(0, 3.05))
axes.set_title("Less noise, better decisions: how much better?", loc="left", fontsize=9)
axes.legend(loc="upper right")
plt.show()
