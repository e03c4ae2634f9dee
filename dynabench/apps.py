from django.apps import AppConfig


class DynabenchConfig(AppConfig):
    name = "dynabench"

    def ready(self) -> None:
        from dynabench import checks  # noqa: F401  (registers the system checks)
