"""Notices that owners should know about their tasks, and news for people about their own work.

They are shown on pages, emailed once a day, and sent to webhooks.

In the order of imports, above `leaderboard`, because notices read the data of all stages, and
below `webhooks` and the owners' pages.
"""
