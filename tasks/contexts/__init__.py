"""Texts that people write about: reading files of them, and bringing them into a round.

Knows models and the configuration; targets, rounds, the pages and the API import it.
"""
