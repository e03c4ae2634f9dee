"""Writes about reports: what people tell moderators, and what these do about it."""

from collections.abc import Collection

from django.db import transaction
from django.utils import timezone

from annotation.models import Report
from dynabench.accounts.models import Annotator, User
from dynabench.accounts.services import log
from tasks.models import Context


@transaction.atomic
def resolve_reports(*, reports: Collection[Report], actor: User) -> int:
    """Mark open reports as dealt with and return how many; no lock."""
    wanted = Report.objects.filter(pk__in=[r.pk for r in reports], resolved_at__isnull=True)
    chosen = list(wanted.values_list("pk", flat=True))
    count = Report.objects.filter(pk__in=chosen).update(resolved_at=timezone.now())
    if count:
        log(actor, "reports.resolved", f"{count} reports", reports=chosen)
    return count


def report_context(*, annotator: Annotator, context: Context, reason: str, comment: str) -> Report:
    """Tell the task's owners that something is wrong with a context; once a person and context."""
    return Report.objects.update_or_create(
        annotator=annotator, context=context, defaults={"reason": reason, "comment": comment}
    )[0]
