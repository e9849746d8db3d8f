"""
The price of trusting a sensor, over the size of its noise
==========================================================

A *sweep* is the same experiment for several settings, here for five sizes of the noise, written down as a
few lines of TOML. With little noise it hardly matters whether readings are trusted (``naive``) or denoised
(``alg1``, ``unfog``). With much noise it decides.

*Regret* is the reward lost in 300 rounds, against one who knows the sensor's bias and what each choice
pays.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import unfog

SPEC = """
[problem]
kind = "gaussian"
dim = 3
actions = 20
context_mean = 1.0
bias_cov = 0.01
features = "product"
prior_cov = 1.0
reward_var = 0.5

[run]
agents = ["naive", "alg1", "unfog"]
rounds = 300
trials = 40

[sweep]
noise_cov = [0.1, 0.5, 1.0, 2.0, 4.0]
"""

# %%
# 40 worlds for each size of the noise; bars are 95 % intervals. The noise is given by its variance, and the
# true values behind the readings have variance 1.
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "noise.toml").write_text(SPEC)
    result = unfog.run(Path(folder, "noise.toml"))
print(unfog.table(result))
plt.figure(unfog.figure(result, "The more noise, the dearer is trust", width=7.0))
plt.show()
