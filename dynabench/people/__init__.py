"""A person's own pages: their work, their data, and invitations to join tasks."""
