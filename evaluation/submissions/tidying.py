"""Forget submitters whose account is gone and for whom nothing counts any more."""

from django.db.models import F
from django.utils import timezone

from core.periodic import register_daily_tidying
from evaluation.contract import Outcome
from evaluation.models import EvaluationRun, EvaluationSetVersion, Submission
from evaluation.submissions.quota import QUOTA_WINDOW
from evaluation.test_sets.submitters import record_submitters


@register_daily_tidying(why="Whose a withdrawn model was is needed for a limited time.")
def tidy_submitters(max_rows: int) -> int:
    """Delete the link to the person from up to `max_rows` submissions of deleted accounts.

    Returns how many. The link is kept while the submission counts in today's quota. It is also kept
    if a result on a sealed set was shown. Takes no lock: a second worker finds no rows.
    """
    record_submitters()  # rows of older releases have none yet
    orphans = Submission.objects.exclude(person=None).exclude(person__accounts__user=F("owner"))
    old_orphans = orphans.filter(queued_at__lt=timezone.now() - QUOTA_WINDOW)
    shown_runs = EvaluationRun.objects.filter(
        submission__in=old_orphans,
        suite=EvaluationRun.Suite.PLAIN,
        outcome=Outcome.OK,
        is_shown=True,
    )
    versions = EvaluationSetVersion.objects.filter(pk__in=shown_runs.values("version"))
    versions = versions.select_related("evaluation_set", "dataset")
    sealed_ids = [version.pk for version in versions if version.is_sealed]
    counting_submissions = shown_runs.filter(version__in=sealed_ids).values("submission")
    idle_ids = list(
        old_orphans.exclude(pk__in=counting_submissions).values_list("pk", flat=True)[:max_rows]
    )
    return Submission.objects.filter(pk__in=idle_ids).update(person=None)
