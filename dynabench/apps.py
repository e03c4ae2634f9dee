import gc

from django.apps import AppConfig
from django.conf import settings


class DynabenchConfig(AppConfig):
    name = "dynabench"

    def ready(self) -> None:
        from core.text.catalogues import compile_outdated_catalogues
        from dynabench import checks  # noqa: F401  (registers the system checks)

        for folder in settings.LOCALE_PATHS:
            compile_outdated_catalogues(folder)  # here, for every way to start the site passes here
        gc.freeze()  # what is loaded stays: nobody need look through it for garbage
        gc.enable()  # which rested while it was loaded
