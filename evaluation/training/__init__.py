"""Training of the next target, and the starter models. Only this folder loads torch."""
