"""Models that mean harm, and what must become of each: run by `manage.py doctor` and the tests."""
