"""Data access: prepared queries, SQL, caches, encryption."""
