"""Help with writing on the write page, where a task's owners allow it."""
