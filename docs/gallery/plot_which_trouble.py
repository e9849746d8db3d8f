"""
A sensor that gets worse, and how that is noticed
=================================================

From round 150 on a sensor has five times the noise variance that was promised. The agent ``adaptive``
weighs seven sizes of the noise against each other, by how well each explains the readings.
``unfog.hypotheses`` shows these weights: most of the probability moves to the new size soon after the change.
"""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import unfog
from unfog.plotting import STYLE

problem = unfog.GaussianProblem(
    dim=3, actions=10, noise_cov=2.5, assumed_noise_cov=0.5, bias_cov=1.0, trouble_from=150
)
found = unfog.hypotheses(problem, rounds=300, trials=10, seed=0)
shares = found.mean("trial").groupby("size").sum("hypothesis").transpose("size", "round")
print(shares.isel(round=[149, 299]).round(2).to_pandas())

# %%
# Means over 10 sensors. The colour says the size: dark is less noise than promised, light is more.
plt.rcParams.update(STYLE)
figure, axes = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
shades = mpl.colormaps["viridis"](np.linspace(0.05, 0.95, shares.sizes["size"]))
names = [f"{size:.2g} times as promised" for size in shares["size"].values]
axes.stackplot(shares["round"], shares, labels=names, colors=shades, edgecolor="white", linewidth=0.4)
axes.axvline(150, color="black", linewidth=1.0, linestyle="--")
axes.annotate(
    "the noise grows fivefold", (150, 1.0), (4, 4), textcoords="offset points", annotation_clip=False
)
axes.set(xlabel="round", ylabel="probability of each size of the noise", xlim=(1, 300), ylim=(0, 1))
axes.set_title("The agent finds out that its sensor got worse\n", loc="left", fontsize=9)
axes.legend(title="noise variance", loc="center left", bbox_to_anchor=(1.01, 0.5), reverse=True, fontsize=8)
plt.show()
