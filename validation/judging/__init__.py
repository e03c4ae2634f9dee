"""Judging of examples: the queue, blind judging, gold items, the page and the writes.

Used by pages and the API; the statistics do not import it.
"""
