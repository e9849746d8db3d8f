"""Logs in, values of policies out: what would another policy have earned? Figures are in `lab/evaluate`."""
