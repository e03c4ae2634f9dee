"""Communities: people who maintain tasks together.

A community has a page, news, a board across its tasks, and models that are submitted to all of
the tasks at once. In the order of imports, it is above `leaderboard`, because its board
reads the tasks' boards, and below the owners' pages.
"""
