"""Training of next targets, and the starter models. Loads torch."""
