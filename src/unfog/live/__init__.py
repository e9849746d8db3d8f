"""Decisions for real: decide, reward, reveal."""
