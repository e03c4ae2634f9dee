"""Recruiting people for a study: how large it has to be, and whose work needs a look.

Above `leaderboard`; pages and commands import it.
"""
