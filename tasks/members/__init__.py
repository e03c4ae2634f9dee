"""The people of a task: invitations, what owners ask of them, and roles that ended."""
