"""
A reward that is no straight line
=================================

Here the reward rises and falls with the context like a wave, with a pace of its own for each of three arms.
``unfog.features.quadrature`` takes such a function of yours and averages it over all that the context may be
(right). Asked at the denoised value alone (left) the function promises too much, most of all for the
fastest wave, and the arm that seems best is not the best one.

An *arm* is one of the things that can be done; the *context* is the true value behind a reading.
"""

import matplotlib.pyplot as plt
import numpy as np

import unfog
from unfog.features import Context
from unfog.plotting import COLOURS, DASHES, STYLE


def phi(action, context):
    """What the reward is made of; actions and contexts broadcast against each other."""
    return np.sin(action * context)


paces, theta, sd = np.array([[1.0], [2.0], [3.0]]), np.ones(1), 0.5
features = unfog.features.quadrature(phi, dim=1, order=9)(paces)
values = np.linspace(0.0, 2.0, 81)
alone = np.array([features.at(np.array([value])).scores(theta) for value in values])
beliefs = [Context(np.array([value]), np.array([[sd**2]])) for value in values]
averaged = np.array([features.design(belief).scores(theta) for belief in beliefs])

# %%
# The dots check it: means of 1,000 rewards at contexts drawn from the belief, with 95 % intervals.
rng, asked = np.random.default_rng(0), values[::10]
drawn = phi(paces[:, 0, None, None], asked[:, None] + sd * rng.standard_normal((3, asked.size, 1000)))

plt.rcParams.update(STYLE)
figure, panels = plt.subplots(1, 2, figsize=(7.0, 3.6), sharey=True, layout="constrained")
for axes, curves in zip(panels, (alone, averaged), strict=True):
    for arm, place in enumerate((0, 3, 6)):
        mean, reach = drawn[arm].mean(-1), 1.96 * drawn[arm].std(-1) / 1000**0.5
        look = {"color": COLOURS[place], "linestyle": DASHES[place]}
        axes.plot(values, curves[:, arm], label=f"arm of pace {paces[arm, 0]:.0f}", **look)
        axes.errorbar(asked, mean, reach, fmt="o", markersize=3, color=COLOURS[place])
    axes.set(xlabel="denoised value (standard deviation 0.5)")
panels[0].set(ylabel="expected reward; dots: as it is")
panels[0].set_title("Asked at the denoised value", loc="left", fontsize=9)
panels[1].set_title("Averaged over what is believed", loc="left", fontsize=9)
figure.legend(*panels[1].get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()
