"""
Rewards that are yes or no
==========================

Rewards are often 0 or 1: a click or none, cured or not. A ``LogisticProblem`` is a world of such rewards.
Agents keep their names. Again ``unfog`` denoises what is read of the context (the true value behind a
reading), and ``naive-adf``, which trusts the readings, collects fewer.

*Regret* counts the yes-answers lost so far, against one who knows the sensor's bias and how likely each
choice is to succeed.
"""

import matplotlib.pyplot as plt

import unfog

clicks = unfog.LogisticProblem(dim=3, actions=20)
result = unfog.run(clicks, agents=["naive-adf", "alg1-adf", "unfog"], rounds=300, trials=60, seed=0)
print(unfog.table(result))

# %%
# ``-adf`` names how an agent learns from yes and no; ``unfog`` does it the same way by itself.
# Means over 60 worlds with 95 % bands.
plt.figure(unfog.figure(result, "Clicks lost to a noisy sensor"))
plt.show()
