"""Arenas: models ranked by which of two answers people prefer. Import, ranking, board."""
