"""Released datasets of rounds: rows, splits, files, cards, and tasks for other evaluators.

Training and evaluation sets build on them. Does not depend on submissions and their runs.
"""
