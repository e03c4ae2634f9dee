from django.apps import AppConfig


class UpkeepConfig(AppConfig):
    name = "core.jobs"
    label = "upkeep"
