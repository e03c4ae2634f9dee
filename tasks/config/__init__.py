"""A task's configuration, from its text to checked frozen objects. Pure: no database."""
