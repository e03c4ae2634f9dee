"""Hostile models, and how each must end: run only by `manage.py doctor` and the tests."""
