"""Every rival on our problems: regret as a ratio to ours, on the same trials."""

from unfog.lab.baselines.suite import rivals as run

__all__ = ["run"]
