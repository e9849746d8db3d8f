"""
Noise five times as large as believed
=====================================

The data sheet promises a noise variance of 0.3, and the sensor has 1.5. Nobody tells the agents. ``alg1``
and ``unfog`` believe the data sheet. ``adaptive`` finds out from the readings how noisy they really are,
and decides accordingly.

*Regret* is the reward lost so far, against one who knows the sensor as it is and what each choice pays.
"""

import matplotlib.pyplot as plt

import unfog

problem = unfog.GaussianProblem(
    dim=3,
    actions=20,
    noise_cov=1.5,  # what is true
    assumed_noise_cov=0.3,  # what agents are told
    bias_cov=1.0,
    prior_cov=0.1,
    reward_var=0.1,
)
result = unfog.run(problem, agents=["alg1", "unfog", "adaptive"], rounds=300, trials=80, seed=0)
print(unfog.table(result))

# %%
# Means over 80 worlds with 95 % bands; all agents meet the same worlds.
plt.figure(unfog.figure(result, "It pays to doubt the data sheet", width=7.0))
plt.show()
