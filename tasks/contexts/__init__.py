"""Contexts, the texts that people write about: read files of them and add them to a round.

May import models and the configuration. Targets, rounds, pages and the API import it.
"""
