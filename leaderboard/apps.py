from importlib import import_module

from django.apps import AppConfig


class LeaderboardConfig(AppConfig):
    name = "leaderboard"

    def ready(self) -> None:
        """Register this room's answers to the questions of earlier rooms."""
        import_module("leaderboard.answers")
