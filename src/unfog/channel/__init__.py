"""What is told of contexts, channel and rewards before the first round."""
