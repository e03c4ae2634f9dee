"""How long people may finish what they were writing when a round closes."""

from datetime import timedelta

WRITING_TIME = timedelta(minutes=15)
