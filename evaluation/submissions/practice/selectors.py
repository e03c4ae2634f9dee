"""Reads of models that run for practice, and of machines that could run them."""

from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from evaluation.models import PracticeHost, PracticeRun, Submission
from evaluation.models.practice import UNDER_WAY
from evaluation.runs.selectors import filter_counting_runs

HOST_TIMEOUT = timedelta(minutes=3)
"""For so long a machine that was seen is taken to be there."""


def can_run() -> bool:
    """Return whether a machine with a container engine is available for practice."""
    since = timezone.now() - HOST_TIMEOUT
    return settings.PRACTICE_MODELS > 0 and PracticeHost.objects.filter(seen_at__gt=since).exists()


def find_active_run(submission: Submission) -> PracticeRun | None:
    """Return the model's active practice run, or None."""
    under_way = submission.practice_runs.filter(UNDER_WAY, deadline_at__gt=timezone.now())
    return under_way.first()


def find_last_error(submission: Submission) -> str:
    """Return the error of the model's last practice run; empty if it ended without one."""
    ended = submission.practice_runs.exclude(UNDER_WAY).values_list("error", flat=True)
    return ended.first() or ""


def find_start_seconds(submission: Submission) -> float | None:
    """Return how long the model took to start when it was evaluated; None if unknown."""
    usages = filter_counting_runs(submission.runs.all()).values_list("usage", flat=True)
    seconds = (usage.get("start_seconds") for usage in usages[:1])
    return next(seconds, None)
