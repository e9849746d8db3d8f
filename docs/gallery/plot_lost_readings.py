"""
Readings that get lost
======================

A sensor reports three numbers, and some of them do not arrive. The usual agent reads the average in their
place, as if it had been measured. The agent ``gaps`` knows which numbers are missing, and guesses them from
those that came, since the three go together. Where nothing is lost the two are the same. Where much is
lost, ``gaps`` forgoes far less reward.

*Regret* is the reward lost, against one who knows the sensor's bias and what each choice pays.
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
context_mean = [1.0, -1.0, 0.5]
context_cov = [[1.0, 0.8, 0.6], [0.8, 1.0, 0.8], [0.6, 0.8, 1.0]]
noise_cov = 0.3
reward_var = 0.5
prior_cov = 0.1

[run]
agents = ["unfog", "gaps"]
rounds = 200
trials = 80

[sweep]
missing = [0.0, 0.2, 0.4, 0.6]
"""

# %%
# 80 worlds of 200 rounds for each share that is lost; both agents meet the same worlds. Bars are
# 95 % intervals.
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "lost.toml").write_text(SPEC)
    result = unfog.run(Path(folder, "lost.toml"))
print(unfog.table(result))
plt.figure(unfog.figure(result, "It pays to know what was lost", width=7.0))
plt.show()
