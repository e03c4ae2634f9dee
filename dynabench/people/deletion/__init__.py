"""The deletion of an account: what is deleted, what stays, and what is recorded for backups."""
