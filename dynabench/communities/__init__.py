"""Communities: people who keep tasks together, with a page, news, a board across tasks, and models
that are submitted to all of the tasks at once.

Above `leaderboard`, because their board looks at the boards of tasks; the owners' pages import it.
"""
