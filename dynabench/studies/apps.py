"""Configuration of the app `dynabench.studies`."""

from importlib import import_module

from django.apps import AppConfig


class StudiesConfig(AppConfig):
    name = "dynabench.studies"
    label = "studies"

    def ready(self) -> None:
        """Register the studies' answers to questions that campaigns ask."""
        import_module("dynabench.studies.answers")
