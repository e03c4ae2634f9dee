"""Evaluation sets: versions that never change, what is shown of sealed ones, training overlap.

Runs, submissions and the API build on this package, which does not depend on them.
"""
