"""Fit Dawid and Skene's model again where votes were added, and decide by it; for a daily timer."""

from typing import Any

from django.core.management.base import BaseCommand

from tasks.models import Round
from validation.decisions.second_opinion import is_stale
from validation.decisions.services import derive_round
from validation.judging.queue import JUDGED_STATES
from validation.models import RoundPolicy


class Command(BaseCommand):
    help = "Refit the rounds that are judged by dawid-skene and have a tenth more votes than before"

    def handle(self, *args: Any, **options: Any) -> None:
        judged = RoundPolicy.objects.filter(
            round__state__in=JUDGED_STATES, policy__rule="dawid-skene"
        ).select_related("round__task")
        for stored in judged:
            if is_stale(stored):
                changed = derive_round(round=Round.objects.get(pk=stored.round_id))
                self.stdout.write(f"{stored.round}: {changed} examples are decided otherwise.")
