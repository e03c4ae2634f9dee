from django.apps import AppConfig


class CatchesConfig(AppConfig):
    name = "dynabench.catches"
    label = "catches"
