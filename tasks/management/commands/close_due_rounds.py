"""Close the open rounds whose end has come or whose budget is reached; for cron."""

from typing import Any

from django.core.management.base import BaseCommand

from tasks.models import Round
from tasks.rounds.states import close_if_due


class Command(BaseCommand):
    help = "Close the open rounds whose end has come or whose budget is reached."

    def handle(self, *args: Any, **options: Any) -> None:
        for round in Round.objects.filter(state=Round.State.OPEN).select_related("task"):
            if close_if_due(round=round).state == Round.State.CLOSED:
                self.stdout.write(f"Closed {round}.")
