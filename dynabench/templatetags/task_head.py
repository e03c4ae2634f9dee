"""A template tag for the head of a task's pages: its state, and what waits for the reader."""

from dataclasses import dataclass

from django import template
from django.template import Context

from core.accounts.people import get_person
from core.accounts.services import get_annotator
from core.data.adaptive_cache import read_or_count
from dynabench.templatetags.site_menu import find_manage_entry
from tasks.models import Round, Task
from tasks.permissions import can_judge, can_oversee
from tasks.selectors import PLANNED_STATES
from validation.decisions.awaited import JUDGED_ROUND_STATES
from validation.judging.queue import count_queued_examples, has_places

register = template.Library()
LIVE_STATES = (Round.State.OPEN, Round.State.PAUSED)


@dataclass(frozen=True)
class TaskHead:
    """The values that the head of a task's pages shows beside the task's name.

    round: the open or paused round, or else the newest that has opened; None if none has.
    is_managed: whether the reader may open the owners' pages. waiting: how many examples wait for
    votes; 0 if the reader can judge none of them.
    """

    round: Round | None
    is_managed: bool
    waiting: int


@register.simple_tag(takes_context=True, name="task_head")
def build_task_head(context: Context) -> TaskHead:
    """Return the head of the page's task. One query, and more for people who may judge."""
    task: Task = context["task"]
    rounds: list[Round] = []
    if task.config.kind != "arena":
        opened_rounds = task.rounds.exclude(state__in=PLANNED_STATES).order_by("-number")
        # The head is on every page of a task, so it reads no column that it does not show.
        rounds = list(opened_rounds.only("number", "state", "task"))
    live_rounds = [round for round in rounds if round.state in LIVE_STATES]
    return TaskHead(
        round=next(iter(live_rounds or rounds), None),
        is_managed=_is_managed(context, task),
        waiting=_count_waiting(context, task, rounds),
    )


def _is_managed(context: Context, task: Task) -> bool:
    """Return whether the reader may open the task's owners' pages."""
    # Most readers run no task, so for them nothing is looked up.
    return find_manage_entry(context).is_offered and can_oversee(context["user"], task)


def _count_waiting(context: Context, task: Task, rounds: list[Round]) -> int:
    """Return how many examples wait for votes; 0 if the reader can judge none of them.

    The number is cached. The reader is not looked up if it is 0.
    """
    judged_ids = [round.pk for round in rounds if round.state in JUDGED_ROUND_STATES]
    if not judged_ids or not context["user"].is_authenticated:
        return 0
    # Kept for a minute at least: pages are read more often than people vote.
    counts = read_or_count(
        f"queued:{'-'.join(map(str, judged_ids))}", lambda: count_queued_examples(judged_ids)
    )
    waiting = sum(counts.values())
    if not waiting or not can_judge(context["user"], task):
        return 0
    # What the reader wrote or has judged does not wait for them.
    user = get_person(context["request"])
    return waiting if has_places(get_annotator(user), task) else 0
