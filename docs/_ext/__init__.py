"""What the site needs beyond Sphinx: maths without a script, and the Reference, written from the code."""
