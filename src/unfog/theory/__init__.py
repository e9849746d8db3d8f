"""Regret and what is proved of it. No simulation here."""
