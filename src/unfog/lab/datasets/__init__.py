"""Data sets as bandits and as logs: a module each, found and checked by `files`."""
