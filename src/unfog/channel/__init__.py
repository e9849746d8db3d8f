"""What is known of contexts, sensors and rewards before the first round, and how to estimate it from data."""
