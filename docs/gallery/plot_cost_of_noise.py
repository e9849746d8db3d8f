"""
What a noisy sensor costs
=========================

A sensor reads the *context*, the true value that rewards depend on, with a constant error (its *bias*) and
with noise that is new in every reading. Four agents decide on the same readings. The one that trusts them
(``naive``) loses most. Denoising them (``alg1``) does about as well as being told the bias (``oracle``),
and our default, ``unfog``, loses least.

*Regret* is the reward lost so far, against one who knows the sensor's bias and what each arm pays. An *arm*
is one of the things that can be done.
"""

import matplotlib.pyplot as plt

import unfog

problem = unfog.GaussianProblem(
    dim=3,
    actions=20,
    context_mean=[0.5, 0.0, -0.5],
    noise_cov=[[1.4, -0.6, 0.2], [-0.6, 0.7, 0.0], [0.2, 0.0, 0.5]],
)
result = unfog.run(
    problem, agents=["naive", "alg1", "oracle", "unfog"], rounds=500, trials=60, seed=0, engine="numpy"
)
print(unfog.table(result))

# %%
# Bands are 95 % intervals of the mean over the 60 worlds. The table has the differences, which are surer
# than the bands: all agents met the same worlds.
plt.figure(unfog.figure(result, "Trusting a noisy sensor costs reward", width=7.0))
plt.show()
