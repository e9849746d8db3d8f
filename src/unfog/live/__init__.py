"""Decisions for real: decide, reward, reveal, and a log in which nothing is lost."""
