"""The time that people have to finish an example after its round closes."""

from datetime import timedelta

WRITING_TIME = timedelta(minutes=15)
