from django.apps import AppConfig


class BackupsConfig(AppConfig):
    name = "dynabench.backups"
    label = "backups"
