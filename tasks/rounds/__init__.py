"""Rounds: their plan, their targets and their states. Its modules but `forms` are services.

Above `contexts` and `targets`; the pages, the API and the later rooms import it.
"""
