"""Help with writing, where a task's owners allow it, and the record of who had which."""
