"""Backups of a whole site, restoring them, and the move from SQLite to PostgreSQL."""
