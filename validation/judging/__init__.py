"""One person judges one example: the queue, what is blind, gold items, the page, the writes.

For pages and the API; the statistics know nothing of it.
"""
