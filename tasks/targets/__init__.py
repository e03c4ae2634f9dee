"""Models that answer: their settings, how they are asked, and how they fail.

Knows no rounds but their rows; `tasks.rounds`, the pages, the API and the later rooms import it.
"""
