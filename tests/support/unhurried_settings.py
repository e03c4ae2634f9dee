"""The site's own settings for a server in a test, where votes may follow at once."""

from dynabench.settings import *  # noqa: F403
from validation.consensus import reading

reading.MIN_READING_SECONDS = 0
