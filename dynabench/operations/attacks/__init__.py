"""Hostile models and how each must end. Only `manage.py doctor` and the tests run them."""
