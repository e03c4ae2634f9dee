from django.apps import AppConfig


class BackupsConfig(AppConfig):
    name = "dynabench.operations.backups"
    label = "backups"
