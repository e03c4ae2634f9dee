from importlib import import_module

from django.apps import AppConfig


class AnnotationConfig(AppConfig):
    name = "annotation"

    def ready(self) -> None:
        """Register the answers to questions of other apps, and a hook that runs when roles end."""
        from annotation.shown_services import note_read_examples
        from tasks.members import ended_roles

        import_module("annotation.answers_to_tasks")
        if note_read_examples not in ended_roles.LOST_READ_ACCESS_HOOKS:
            ended_roles.LOST_READ_ACCESS_HOOKS.append(note_read_examples)
