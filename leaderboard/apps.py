from importlib import import_module

from django.apps import AppConfig


class LeaderboardConfig(AppConfig):
    name = "leaderboard"

    def ready(self) -> None:
        """Register this app's answers to the questions of earlier apps."""
        import_module("leaderboard.answers")
