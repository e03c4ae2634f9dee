"""The facts from which notices follow, read for all tasks together.

The number of queries does not depend on the number of tasks.
"""

from collections import defaultdict
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef

from annotation.models import Example
from dynabench.notices.counting import count_rows_by_id
from dynabench.notices.registry import TASK_NOTICES, CountNotice, RoundNotice
from dynabench.notices.round_warnings import LATE_JUDGING_TIME, RoundFacts
from dynabench.studies.pilot_selectors import list_pilot_tasks
from tasks.models import Context, Round
from tasks.questions import get_used_budget
from validation.models import QueueItem

LIVE_STATES = (Round.State.OPEN, Round.State.PAUSED, Round.State.CLOSED)
"""The states of a round whose examples are still judged."""
DueNotices = dict[tuple[int, str, int], dict[str, Any]]
"""The numbers of each notice, by (task id, notice's name, round number or 0 for the whole task)."""


def find_due_notices(now: datetime) -> DueNotices:
    """Return the notices that should be open now.

    Each round with a budget costs some more queries.
    """
    due_notices: DueNotices = {}
    for task, rounds in _read_round_facts(now).items():
        for round in rounds:
            due_notices |= _find_due_notices_in_round(task, round, now)
    for notice in TASK_NOTICES.values():
        if isinstance(notice, CountNotice):
            for task, count in notice.count_by_task(now).items():
                if count:
                    due_notices[task, notice.name, 0] = {"count": count}
    # What simulated people leave open waits for nobody.
    pilot_tasks = list_pilot_tasks()
    return {key: numbers for key, numbers in due_notices.items() if key[0] not in pilot_tasks}


def _find_due_notices_in_round(task: int, round: RoundFacts, now: datetime) -> DueNotices:
    due_notices: DueNotices = {}
    for notice in TASK_NOTICES.values():
        if not isinstance(notice, RoundNotice):
            continue
        numbers = notice.get_numbers(round, now)
        # Empty numbers are a notice: its sentence needs none.
        if numbers is not None:
            due_notices[task, notice.name, round.number] = numbers
    return due_notices


def _read_round_facts(now: datetime) -> dict[int, list[RoundFacts]]:
    """Return the facts about all live rounds, by task id."""
    live_rounds = Round.objects.filter(state__in=LIVE_STATES)
    written_examples = Example.objects.filter(context=OuterRef("pk"), retracted_at=None)
    contexts = Context.objects.filter(round__in=live_rounds, is_retired=False)
    untouched_counts = count_rows_by_id(contexts.filter(~Exists(written_examples)), "round")
    context_counts = count_rows_by_id(contexts, "round")
    late_items = QueueItem.objects.filter(
        round__in=live_rounds, still_needed__gt=0, example__created_at__lt=now - LATE_JUDGING_TIME
    )
    late_counts = count_rows_by_id(late_items, "round")
    facts_by_task = defaultdict(list)
    for round in live_rounds.select_related("task"):
        facts_by_task[round.task_id].append(
            RoundFacts(
                number=round.number,
                is_open=round.state == Round.State.OPEN,
                contexts=context_counts.get(round.pk, 0),
                untouched=untouched_counts.get(round.pk, 0),
                waiting_late=late_counts.get(round.pk, 0),
                budget=round.budget,
                used=get_used_budget(round),
            )
        )
    return facts_by_task
