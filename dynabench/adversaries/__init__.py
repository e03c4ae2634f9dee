"""Adversaries: programs of the site that search for failures of a task's models to fool."""
