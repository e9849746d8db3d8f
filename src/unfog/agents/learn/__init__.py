"""Expected features and rewards to a belief about theta. One learner a file."""
