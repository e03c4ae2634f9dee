"""Metrics written by a task's owners: files that an operator reviews and only the sandbox runs."""
