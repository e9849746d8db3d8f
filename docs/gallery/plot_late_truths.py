"""
True values that come late
==========================

In three rounds of ten somebody looks again, and twenty rounds later the *context* is known: the true value
behind the reading. The agent ``late`` then goes back and corrects what it had learnt from that round.
``unfog`` sees readings and rewards alone, and loses more.

*Regret* is the reward lost so far, against one who knows the sensor's bias and what each choice pays.
"""

import matplotlib.pyplot as plt

import unfog

problem = unfog.GaussianProblem(
    dim=3,
    actions=20,
    noise_cov=2.0,
    bias_cov=3.0,
    prior_cov=0.1,
    reward_var=0.1,
    revealed=0.3,  # three true contexts in ten are shown
    reveal_delay=20,  # so many rounds after the reward
)
result = unfog.run(problem, agents=["unfog", "late"], rounds=300, trials=80, seed=0)
print(unfog.table(result))

# %%
# Means over 80 worlds with 95 % bands; all agents meet the same worlds.
plt.figure(unfog.figure(result, "True values help, even few and late", width=7.0))
plt.show()
