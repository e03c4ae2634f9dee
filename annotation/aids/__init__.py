"""Help with writing, where a task's owners allow it: for the write page alone."""
