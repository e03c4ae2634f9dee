from django.apps import AppConfig
from django.db.models.signals import post_migrate, pre_migrate


class TasksConfig(AppConfig):
    name = "tasks"

    def ready(self) -> None:
        from tasks.rounds.fixed import drop_triggers, make_triggers

        pre_migrate.connect(drop_triggers, sender=self)
        post_migrate.connect(make_triggers, sender=self)
