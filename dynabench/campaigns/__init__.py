"""Paid studies: recruiting people, planning the size and the cost, checking careless work.

In the order of imports, above `leaderboard` and below pages and commands.
"""
