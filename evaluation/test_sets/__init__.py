"""Evaluation sets: versions that never change, what is shown of sealed ones, training overlap.

Runs, submissions and the API import it; it knows neither of them.
"""
