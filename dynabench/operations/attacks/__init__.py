"""Hostile models, and how each must end: run by `manage.py doctor` and the tests alone."""
