from importlib import import_module

from django.apps import AppConfig


class ValidationConfig(AppConfig):
    name = "validation"

    def ready(self) -> None:
        """Register this app's answers to the questions of earlier apps."""
        import_module("validation.answers_to_annotation")
        import_module("validation.answers_to_tasks")
        import_module("validation.judging.answers_to_annotation")
