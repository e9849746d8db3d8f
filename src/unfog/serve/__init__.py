"""Decisions for everybody: HTTP over `unfog.live`, and a page that shows whether it works."""
