"""Scores of answers: metrics, intervals, robustness, comparison. Pure; any folder may import it."""
