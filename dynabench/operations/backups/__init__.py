"""Backups of a whole site, its restoration, and its move from SQLite to PostgreSQL."""
