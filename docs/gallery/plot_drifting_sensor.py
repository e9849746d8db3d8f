"""
A sensor that drifts, and a few reference readings
==================================================

A gas sensor slowly loses its zero: its *bias*, the error that all its readings share, wanders. Once in 50 hours a good instrument is read beside it.
The agent ``temporal`` follows the wandering and uses each reference reading; ``unfog`` takes the bias for fixed and sees readings alone.
The picture shows by how far each is wrong about the air, and that ``temporal`` says honestly how sure it is.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unfog
from unfog.look import COLOURS, DASHES, STYLE

rng, pairs, hours = np.random.default_rng(4), 300, 600  # 300 hours with the truth, then 300 without
level = 20 + np.cumsum(rng.normal(0, 0.3, hours))[:, None]
sensor = level + 2.0 + np.cumsum(rng.normal(0, 0.25, hours))[:, None] + rng.normal(0, 1.0, (hours, 1))
found = unfog.calibrate(sensor[:pairs], level[:pairs], times=np.arange(pairs, dtype=float))

# %%
# Live decisions, an hour each, on one file in a temporary folder.
errors, deviations = {}, {}
with tempfile.TemporaryDirectory() as folder, unfog.live.open(Path(folder, "air.unfog"), sync="normal") as store:
    for agent in ("unfog", "temporal"):
        told = {"context": ["no2"], "arms": ["open", "shut"], "channel": found.channel, "seed": 3}
        air = store.problem(agent, agent=agent, **told)
        for hour in range(pairs, hours):
            decision = air.decide(sensor[hour], at=float(hour))
            errors.setdefault(agent, []).append(decision.denoised["no2"] - level[hour].item())
            deviations.setdefault(agent, []).append(decision.sd["no2"])
            if hour % 50 == 0 and agent == "temporal":
                air.reveal(decision.id, level[hour])

# %%
# One sensor. The band is the 95 % interval that ``temporal`` states.
plt.rcParams.update(STYLE)
figure, axes = plt.subplots(figsize=(6.8, 3.6), layout="constrained")
time, reach = np.arange(hours - pairs), 1.96 * np.array(deviations["temporal"])
axes.plot(time, (sensor - level)[pairs:] - found.bias, ".", color="0.75", markersize=3, label="reading, bias of the study removed")
axes.fill_between(time, -reach, reach, color=COLOURS[0], alpha=0.15, linewidth=0)
axes.plot(time, errors["unfog"], color=COLOURS[1], linestyle=DASHES[1], label="unfog")
axes.plot(time, errors["temporal"], color=COLOURS[0], label="temporal")
axes.plot(time[::50], np.zeros(6), "^", color="black", label="reference reading")
axes.set(xlabel="hour", ylabel="error of what is believed, µg/m³", xlim=(0, hours - pairs))
axes.set_title("A reference reading now and then keeps a drifting sensor in line", loc="left", fontsize=9)
axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
plt.show()
