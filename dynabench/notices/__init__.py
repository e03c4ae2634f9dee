"""Notices that owners should know about their tasks, and news for people about their own work.

They are shown on pages, emailed once a day, and sent to webhooks.

Above `leaderboard`, because it looks at all stages; `webhooks` and the owners' pages import it.
"""
