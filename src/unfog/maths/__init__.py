"""Arrays, distributions and random streams: mathematics without a word of bandits."""
