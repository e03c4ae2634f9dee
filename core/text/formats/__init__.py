"""Formats of numbers in which we differ from Django, by language."""
