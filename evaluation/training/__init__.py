"""Training the next target of a task, and the starter models. Only this folder loads torch."""
