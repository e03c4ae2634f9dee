"""The people of a task: invitations, assignments, and roles that ended."""
