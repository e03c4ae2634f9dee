from django.apps import AppConfig


class AnnotationConfig(AppConfig):
    name = "annotation"

    def ready(self) -> None:
        from annotation.shown_services import note_read_examples
        from tasks.members import ended_roles

        if note_read_examples not in ended_roles.NOTES:
            ended_roles.NOTES.append(note_read_examples)
