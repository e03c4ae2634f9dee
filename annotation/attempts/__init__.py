"""Attempts: from a submitted text, through the targets' answers, to a stored example.

Used by aids, pages and the API. Later stages only read the rows.
"""
