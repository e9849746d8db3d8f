"""The published systems that unfog is compared with: rows of three parts like our own agents."""
