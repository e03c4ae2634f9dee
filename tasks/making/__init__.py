"""New tasks: the gallery from which people choose, drafts, and the creation of a task."""
