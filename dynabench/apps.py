import gc

from django.apps import AppConfig


class DynabenchConfig(AppConfig):
    name = "dynabench"

    def ready(self) -> None:
        from dynabench import checks  # noqa: F401  (registers the system checks)

        gc.freeze()  # what is loaded stays: nobody need look through it for garbage
        gc.enable()  # which rested while it was loaded
