"""The deletion of an account: what goes, what stays, and what is noted for backups."""
