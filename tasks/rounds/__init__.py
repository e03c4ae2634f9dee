"""Rounds: their plan, their targets and their states. All modules but `forms` are services.

May import `contexts` and `targets`; the pages, the API and the later rooms import it.
"""
