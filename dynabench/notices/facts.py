"""Facts about all tasks for the rules of notices; a query each, whatever the number of tasks."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Exists, OuterRef, QuerySet

from annotation.models import Example, Report
from dynabench.campaigns.models import Place
from dynabench.notices.rules import LATE, RoundFacts, TaskFacts
from evaluation.models import Submission
from tasks.models import Context, Round, TargetFailure
from tasks.questions import used_of
from tasks.targets.failures import FORGOTTEN
from validation.consensus.reading import reads_too_little
from validation.models import Comment, QueueItem, Validation
from validation.statistics.people import counted_paces

RECENT = timedelta(days=7)
LIVE = (Round.State.OPEN, Round.State.PAUSED, Round.State.CLOSED)
"""States of a round whose examples are still judged."""


def facts(now: datetime) -> Mapping[int, TaskFacts]:
    """Return the facts by task; tasks without any are missing.

    A round with a budget costs some queries more, those of the budget.
    """
    # Older failures are forgotten.
    failing = TargetFailure.objects.filter(last_at__gte=now - FORGOTTEN)
    reports = Report.objects.filter(resolved_at=None)
    comments = Comment.objects.filter(reported_at__isnull=False)
    models = Submission.objects.filter(queued_at__gte=now - RECENT, withdrawn_at=None)
    # People of studies for whom the site had nothing left to do.
    ended = Place.objects.filter(ran_out_at__gte=now - RECENT)
    open_reports = Counter(_count_by(reports, "context__round__task"))
    open_reports.update(_count_by(comments, "example__round__task"))
    counts: dict[str, Mapping[int, int]] = {
        "failing": _count_by(failing, "target__task"),
        "reports": open_reports,
        "submitted": _count_by(models, "task"),
        "out_of_work": _count_by(ended, "campaign__task"),
        "hasty": _count_hasty(now),
    }
    rounds = _round_facts(now)
    tasks = set(rounds).union(*counts.values())
    facts_of = {}
    for task in tasks:
        numbers = {name: by_task.get(task, 0) for name, by_task in counts.items()}
        facts_of[task] = TaskFacts(rounds.get(task, []), **numbers)
    return facts_of


def _round_facts(now: datetime) -> dict[int, list[RoundFacts]]:
    """Return the facts of all live rounds, by task."""
    live = Round.objects.filter(state__in=LIVE)
    written = Example.objects.filter(context=OuterRef("pk"), retracted_at=None)
    contexts = Context.objects.filter(round__in=live, is_retired=False)
    untouched = _count_by(contexts.filter(~Exists(written)), "round")
    context_counts = _count_by(contexts, "round")
    late = QueueItem.objects.filter(
        round__in=live, still_needed__gt=0, example__created_at__lt=now - LATE
    )
    late_counts = _count_by(late, "round")
    by_task = defaultdict(list)
    for round in live.select_related("task"):
        by_task[round.task_id].append(
            RoundFacts(
                number=round.number,
                is_open=round.state == Round.State.OPEN,
                contexts=context_counts.get(round.pk, 0),
                untouched=untouched.get(round.pk, 0),
                waiting_late=late_counts.get(round.pk, 0),
                budget=round.budget,
                used=used_of(round),
            )
        )
    return by_task


def _count_hasty(now: datetime) -> Counter[int]:
    """Return how many judges answer faster than they can read, by task.

    By their votes of a week in live rounds.
    """
    votes = Validation.objects.filter(
        example__round__state__in=LIVE, created_at__gte=now - RECENT, by_program=False
    )
    paces = (
        votes.filter(validator__isnull=False)
        .order_by()
        .values_list("example__round__task", "validator")
    )
    hasty: Counter[int] = Counter()
    for task, _judge, timed, unread in paces.annotate(**counted_paces()):
        if reads_too_little(unread, timed):
            hasty[task] += 1
    return hasty


def _count_by(rows: QuerySet[Any], path: str) -> dict[int, int]:
    """Return how many of the rows belong to each task or round, by its id."""
    # Without the default order, whose columns would be part of each group.
    return dict(rows.order_by().values_list(path).annotate(Count("pk")))
