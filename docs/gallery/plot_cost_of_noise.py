"""
What does it cost to ignore the noise?
======================================

A sensor reads a context with noise and a bias. One agent takes the reading for the truth (``naive``), one
denoises it (``unfog``), and one is told the bias (``oracle``). All three play the same forty simulated
problems.
"""

import unfog

problem = unfog.GaussianProblem(dim=3, actions=20, noise_cov=1.5, bias_cov=1.5)
agents = ["naive", "unfog", "oracle"]
result = unfog.run(problem, agents=agents, rounds=200, trials=40, seed=0)
print(unfog.table(result))

# %%
# Regret is what an agent has lost against the best it could have done. The lower the line, the better.

figure = unfog.figure(result)
