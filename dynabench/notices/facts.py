"""What tasks have now, for the rules of notices; one query a fact, whatever the number of tasks."""

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
from validation.models import Comment, QueueItem, Validation
from validation.rules.reading import reads_too_little
from validation.statistics.people import counted_paces

RECENT = timedelta(days=7)
LIVE = (Round.State.OPEN, Round.State.PAUSED, Round.State.CLOSED)


def facts(now: datetime) -> Mapping[int, TaskFacts]:
    """By task; tasks of which there is nothing to know are missing.

    A round with a budget costs some queries more, those of the budget.
    """
    failing = TargetFailure.objects.filter(last_at__gte=now - FORGOTTEN)
    reports = Report.objects.filter(resolved_at=None)
    comments = Comment.objects.filter(reported_at__isnull=False)
    models = Submission.objects.filter(queued_at__gte=now - RECENT, withdrawn_at=None)
    ended = Place.objects.filter(ran_out_at__gte=now - RECENT)
    counts = {
        "failing": _by(failing, "target__task"),
        "reports": Counter(_by(reports, "context__round__task"))
        + Counter(_by(comments, "example__round__task")),
        "submitted": _by(models, "task"),
        "out_of_work": _by(ended, "campaign__task"),
        "hasty": _hasty(now),
    }
    rounds = _rounds(now)
    tasks = {*rounds, *(task for found in counts.values() for task in found)}
    return {
        task: TaskFacts(
            rounds.get(task, []), **{name: found.get(task, 0) for name, found in counts.items()}
        )
        for task in tasks
    }


def _rounds(now: datetime) -> dict[int, list[RoundFacts]]:
    live = Round.objects.filter(state__in=LIVE)
    written = Example.objects.filter(context=OuterRef("pk"), retracted_at=None)
    contexts = Context.objects.filter(round__in=live, is_retired=False)
    untouched = _by(contexts.filter(~Exists(written)), "round")
    there = _by(contexts, "round")
    late = _by(
        QueueItem.objects.filter(
            round__in=live, still_needed__gt=0, example__created_at__lt=now - LATE
        ),
        "round",
    )
    found = defaultdict(list)
    for one in live.select_related("task"):
        found[one.task_id].append(
            RoundFacts(
                number=one.number,
                is_open=one.state == Round.State.OPEN,
                contexts=there.get(one.pk, 0),
                untouched=untouched.get(one.pk, 0),
                waiting_late=late.get(one.pk, 0),
                budget=one.budget,
                used=used_of(one),
            )
        )
    return found


def _hasty(now: datetime) -> Counter[int]:
    """By task how many judges do not read, by their votes of a week in rounds that are judged."""
    votes = Validation.objects.filter(
        example__round__state__in=LIVE, created_at__gte=now - RECENT, by_program=False
    )
    paces = (
        votes.filter(validator__isnull=False)
        .order_by()
        .values_list("example__round__task", "validator")
    )
    return Counter(
        task
        for task, _who, timed, unread in paces.annotate(**counted_paces())
        if reads_too_little(unread, timed)
    )


def _by(rows: QuerySet[Any], path: str) -> dict[int, int]:
    """How many of the rows belong to each task or round."""
    return dict(rows.order_by().values_list(path).annotate(Count("pk")))
