"""From a submitted text to a stored example: attempts, asking the targets, the writes.

For aids, pages and the API; later stages read the rows.
"""
