"""What owners should know of their tasks: noticed, shown, mailed once a day, told to webhooks.

Above `leaderboard`, because it looks at all stages; `webhooks` and the owners' pages import it.
"""
