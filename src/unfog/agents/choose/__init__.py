"""Expected features and a belief about theta to an arm. One chooser a file."""
