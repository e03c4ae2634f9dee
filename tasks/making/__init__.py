"""New tasks of people: the gallery that they choose from, and what makes the task."""
