"""
What another rule would have earned
===================================

An app has sent messages for 3,000 days, and wrote down what it saw, what it sent, with which probability,
and what came of it. From that log ``unfog.evaluate`` says what other rules (*policies*) would have earned,
without trying them on anybody. Bars that do not reach the dashed line differ from what was earned by more
than chance easily explains.
"""

import matplotlib.pyplot as plt
import numpy as np

import unfog
from unfog.plotting import COLOURS, DASHES, STYLE

rng, n = np.random.default_rng(0), 3000
true = rng.normal(0.0, 1.0, (n, 2))  # steps and sleep, in deviations from the usual
seen = true + np.array([0.5, -0.3]) + rng.normal(0.0, 0.8, (n, 2))
arms = np.array(["nothing", "walk", "rest"])


def pays(context):
    """What each message brings on average."""
    steps, sleep = context.T
    return np.stack([0 * steps, 0.2 + steps - 0.5 * sleep, -0.3 - 0.4 * steps + 1.2 * sleep], axis=1)


chances = np.full((n, 3), 0.1)  # the app takes what looks best, and draws lots in three of ten cases
chances[np.arange(n), pays(seen).argmax(axis=1)] += 0.7
sent = np.array([rng.choice(3, p=row) for row in chances])
log = {
    "steps": seen[:, 0],
    "sleep": seen[:, 1],
    "arm": arms[sent],
    "probability": chances[np.arange(n), sent],
    "reward": pays(true)[np.arange(n), sent] + 0.7 * rng.standard_normal(n),
}

# %%
# Doubly robust estimates with 95 % intervals. ``fitted`` is the rule that a model of the log likes best.
policies = ["always:walk", "always:rest", "uniform", "logger", "fitted"]
words = ["always walk", "always rest", "by lot", "what was done", "best by a model\nof the log"]
found = unfog.evaluate(log, policies, columns={"context": ["steps", "sleep"]}).sel(estimator="dr")
print(found[["value", "low", "high"]].to_pandas().round(3))

plt.rcParams.update(STYLE)
figure, axes = plt.subplots(figsize=(7.0, 3.6), layout="constrained")
value, ends = found["value"], [found["value"] - found["low"], found["high"] - found["value"]]
axes.errorbar(value, words, xerr=ends, fmt="o", color=COLOURS[0], capsize=3)
axes.axvline(log["reward"].mean(), color="black", linestyle=DASHES[1], linewidth=1.0)
axes.text(log["reward"].mean(), 4.45, " earned", va="center")
axes.set(xlabel="reward per day", ylim=(-0.5, 4.7))
axes.set_title("What five rules would have earned, from one log of 3,000 days", loc="left", fontsize=9)
plt.show()
