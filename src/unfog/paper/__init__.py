"""Studies around the paper: its bounds beside regret, posteriors against NUTS, warfarin."""
