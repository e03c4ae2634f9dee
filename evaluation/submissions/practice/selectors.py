"""Read practice runs, and find machines that could run models."""

from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from evaluation.models import PracticeHost, PracticeRun, Submission
from evaluation.models.practice import UNDER_WAY_CONDITION
from evaluation.runs.selectors import filter_counting_runs

HOST_TIMEOUT = timedelta(minutes=3)
"""How long a machine counts as available after it was last seen."""


def has_practice_host() -> bool:
    """Return whether a machine with a container engine is available for practice."""
    since = timezone.now() - HOST_TIMEOUT
    return settings.PRACTICE_MODELS > 0 and PracticeHost.objects.filter(seen_at__gt=since).exists()


def find_active_run(submission: Submission) -> PracticeRun | None:
    """Return the model's active practice run, or None."""
    active_runs = submission.practice_runs.filter(
        UNDER_WAY_CONDITION, deadline_at__gt=timezone.now()
    )
    return active_runs.first()


def find_last_error(submission: Submission) -> str:
    """Return the error of the practice run that ended last; empty if it ended without one."""
    errors = submission.practice_runs.exclude(UNDER_WAY_CONDITION).values_list("error", flat=True)
    return errors.first() or ""


def find_start_seconds(submission: Submission) -> float | None:
    """Return how long the model took to start when it was evaluated; None if unknown."""
    usages = filter_counting_runs(submission.runs.all()).values_list("usage", flat=True)
    seconds = (usage.get("start_seconds") for usage in usages[:1])
    return next(seconds, None)
