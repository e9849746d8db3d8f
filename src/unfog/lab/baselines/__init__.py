"""Every baseline on our problems: regret as a ratio to ours, on the same trials."""
