"""Catches: each task's public wall, pages with the author's consent, and first catches."""
