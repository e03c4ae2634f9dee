"""Writes of reviewers: reports of contexts, and examples that are withdrawn."""

from collections import defaultdict
from collections.abc import Collection

from django.db import transaction
from django.utils import timezone

from annotation.models import Example, Report
from core.accounts.erasure_log import record_erasure
from core.accounts.models import Annotator, Erasure, User
from core.accounts.services import log
from tasks.contexts.media.services import hide_withdrawn_media, list_digests
from tasks.models import Context, Task


@transaction.atomic
def resolve_reports(*, reports: Collection[Report], actor: User) -> int:
    """Mark open reports as resolved; return how many. Takes no lock."""
    open_reports = Report.objects.filter(pk__in=[r.pk for r in reports], resolved_at__isnull=True)
    ids_by_task: dict[str, list[int]] = defaultdict(list)
    for pk, code in open_reports.values_list("pk", "context__round__task__code"):
        ids_by_task[code].append(pk)
    for code, report_ids in ids_by_task.items():
        # One that somebody else resolved in between only gets a later time.
        Report.objects.filter(pk__in=report_ids).update(resolved_at=timezone.now())
        # The log needs the code only, so no task is read.
        task = Task(code=code)
        log(actor, "reports.resolved", f"{len(report_ids)} reports", about=task, reports=report_ids)
    return sum(map(len, ids_by_task.values()))


def report_context(*, annotator: Annotator, context: Context, reason: str, comment: str) -> Report:
    """Report a context to the task's reviewers; return the report.

    A person's later report replaces the earlier one. It is open again, even if reviewers had
    resolved it.
    """
    # Open again, and mailed again, as it may say something else now.
    values = {"reason": reason, "comment": comment, "resolved_at": None, "told_at": None}
    return Report.objects.update_or_create(annotator=annotator, context=context, defaults=values)[0]


def mark_retracted(example: Example) -> None:
    """Retract an example, and hide files that no other example uses.

    Records an erasure, so that a restored backup retracts the example again. Call it with the
    example locked.
    """
    example.retracted_at = timezone.now()
    example.save(update_fields=["retracted_at"])
    # A backup that is restored would bring the example back; the note retracts it again.
    record_erasure(Erasure.Kind.EXAMPLE, example.uuid)
    if digests := list_digests(example.inputs.values()):
        hide_withdrawn_media(task=example.round.task, digests=digests)


@transaction.atomic
def withdraw_example(*, example: Example, actor: User | None, reason: str) -> Example:
    """Retract an example even if it is judged or released. Locks the example.

    For reviewers, and for authors who delete their data; the caller checks permissions.
    Idempotent. The example is excluded from its round's statistics at once. A released
    version keeps it; the next version has a tombstone instead. reason: stored in the log,
    never public.
    """
    # Of two reviewers only the first finds it not yet retracted, and so it is logged once.
    locked_example = Example.objects.select_for_update(of=("self",)).get(pk=example.pk)
    if locked_example.retracted_at is None:
        mark_retracted(locked_example)
        log(actor, "example.withdrawn", locked_example, reason=reason)
    return locked_example
