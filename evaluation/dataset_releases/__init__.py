"""Released datasets of rounds: rows, splits, files, cards, and tasks for other evaluators.

Training and sets read them; it knows nothing of submissions and their runs.
"""
