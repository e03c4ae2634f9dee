"""Writes about reports: what people tell moderators, and what these do about it."""

from collections import defaultdict
from collections.abc import Collection

from django.db import transaction
from django.utils import timezone

from annotation.models import Report
from dynabench.accounts.models import Annotator, User
from dynabench.accounts.services import log
from tasks.models import Context, Task


@transaction.atomic
def resolve_reports(*, reports: Collection[Report], actor: User) -> int:
    """Mark open reports as dealt with and return how many; no lock."""
    wanted = Report.objects.filter(pk__in=[r.pk for r in reports], resolved_at__isnull=True)
    chosen: dict[str, list[int]] = defaultdict(list)
    for pk, code in wanted.values_list("pk", "context__round__task__code"):
        chosen[code].append(pk)
    for code, pks in chosen.items():
        Report.objects.filter(pk__in=pks).update(resolved_at=timezone.now())
        task = Task(code=code)
        log(actor, "reports.resolved", f"{len(pks)} reports", about=task, reports=pks)
    return sum(map(len, chosen.values()))


def report_context(*, annotator: Annotator, context: Context, reason: str, comment: str) -> Report:
    """Tell the task's owners that something is wrong with a context; once a person and context."""
    said = {"reason": reason, "comment": comment, "resolved_at": None, "told_at": None}
    return Report.objects.update_or_create(annotator=annotator, context=context, defaults=said)[0]
