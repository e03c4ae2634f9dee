"""Formats of Arabic numbers."""
