"""unfog."""
