"""Decisions for real: every event is logged before it is answered, and belief = fold(log)."""
