"""Targets and generators: their settings, how they are called, and how they fail.

Uses only the rows of rounds; `tasks.rounds`, the pages, the API and the later rooms import it.
"""
