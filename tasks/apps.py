from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_migrate


class TasksConfig(AppConfig):
    name = "tasks"

    def ready(self) -> None:
        from tasks.rounds.target_triggers import create_triggers, drop_triggers

        pre_migrate.connect(drop_triggers, sender=self)
        post_migrate.connect(create_triggers, sender=self)
