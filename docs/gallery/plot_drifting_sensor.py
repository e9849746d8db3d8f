"""
A sensor that drifts, and a few reference readings
==================================================

A sensor slowly loses its zero: its *bias*, the error that all its readings share, wanders. In one round of
twenty a good instrument shows the *context*, the true value behind the reading. ``temporal`` knows that
contexts and errors move, and uses each reference reading for the rounds around it. ``late`` uses them too,
but takes the bias for fixed. ``unfog`` sees readings alone.

*Regret* is the reward lost so far, against one who sees every context and knows what each choice pays.
"""

import matplotlib.pyplot as plt

import unfog

problem = unfog.TemporalProblem(
    dim=2,
    actions=10,
    fast_cov=1.0,
    fast_time=5.0,  # the context forgets in about five rounds
    level_walk=0.002,  # and its level wanders
    bias_cov=0.5,
    bias_walk=0.02,  # so does the bias of the sensor
    error_cov=0.5,
    error_time=3.0,  # errors stay for about three rounds
    noise_cov=0.1,
    revealed=0.05,  # one true context in twenty is shown, after its reward
)
result = unfog.run(problem, agents=["unfog", "late", "temporal"], rounds=300, trials=40, seed=0)
print(unfog.table(result))

# %%
# Means over 40 worlds with 95 % bands; all agents meet the same worlds.
plt.figure(unfog.figure(result, "It pays to follow the drift", width=7.0))
plt.show()
