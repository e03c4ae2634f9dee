"""From votes to decisions: consensus rows, policies, owners' decisions and their review.

Judging, statistics and the owners' pages read them.
"""
