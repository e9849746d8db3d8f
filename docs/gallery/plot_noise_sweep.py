"""
The price of trusting a sensor, over the size of its noise
==========================================================

One spec, a *sweep*: the same experiment for five sizes of the noise, written down as a few lines of TOML.
With little noise it does not matter whether readings are trusted (TS naive) or denoised (Algorithm 1); with
much noise it does.

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
# 40 worlds for each size of the noise. The noise is given by its variance; contexts have variance 1.
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "noise.toml").write_text(SPEC)
    result = unfog.run(Path(folder, "noise.toml"))
print(unfog.table(result))
plt.figure(unfog.figure(result, "The noisier the sensor, the dearer it is to trust it"))
plt.show()
