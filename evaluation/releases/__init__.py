"""Datasets made of rounds: rows, splits, files, cards, and programs for other evaluators."""
