"""Writes about catches: an author's consent to a page, and first catches."""

from collections.abc import Iterable, Iterator
from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.models import Example
from core.accounts.models import Annotator
from core.errors import Refused
from core.periodic import register_quarter_hourly
from dynabench.catches.models import FirstCatch, SharedCatch
from dynabench.catches.rules import SliceKey, find_first_catches, list_slices
from dynabench.catches.selectors import (
    CatchLine,
    build_line,
    select_own_catches,
    select_public_catches,
)
from evaluation.dataset_releases.undo_services import is_any_release_unused, note_shown_examples
from leaderboard.people.standings import may_use_rankings
from tasks.config.schema import TaskConfig
from tasks.models import Task
from tasks.permissions import Person, can_read
from validation.decisions.counted import build_measure_condition, build_try_condition

SLICES_WITHOUT_FIELD = ("tag", "challenge", "language")
"""Names of slices that are not fields of the configuration."""
LOOK_BACK_TIME = timedelta(days=1)
"""How far back decisions are checked for first catches, every quarter of an hour."""


class NotShareable(Refused):
    """Raised if an example may not have a page of its own."""

    code = "not_shareable"


def show_catches(reader: Person, task: Task, catches: Iterable[Example]) -> list[CatchLine]:
    """Return the lines of public catches of the task for a reader, and record that they are shown.

    This makes their releases final, unless the reader may read the task's answers anyway and so
    never judges. Catches of a release that was undone meanwhile are left out. Takes no lock.

    catches: from `select_public_catches`.
    """
    examples = list(catches)
    # The role is asked for only while it matters.
    if is_any_release_unused(examples) and not can_read(reader, task):
        examples = note_shown_examples(examples)
    return [build_line(example) for example in examples]


def show_newest_catches(reader: Person, task: Task, max_count: int) -> list[CatchLine]:
    """Return the task's newest public catches, and record that they are shown."""
    return show_catches(reader, task, select_public_catches(task)[:max_count])


def share_catch(*, annotator: Annotator, example: Example) -> SharedCatch:
    """Store the author's consent to a page with their pseudonym. Raises NotShareable.

    If the consent is stored already, returns it. Takes no lock: the primary key prevents a second
    row.
    """
    if example.round.task.is_sensitive:
        raise NotShareable(_("You can't share examples of a sensitive task."))
    # As it stands now: a decision may have been changed since the card was shown.
    is_catch = select_own_catches(annotator).filter(pk=example.pk).exists()
    if not is_catch or not may_use_rankings(annotator):
        raise NotShareable(_("You can share only your own confirmed catches. Choose one of them."))
    return SharedCatch.objects.get_or_create(example=example, defaults={"annotator": annotator})[0]


def withdraw_sharing(*, annotator: Annotator, example: Example) -> None:
    """Delete the author's consent, so that the page disappears at once. Takes no lock."""
    SharedCatch.objects.filter(annotator=annotator, example=example).delete()


def delete_shared_catches(*, annotator: Annotator) -> None:
    """Delete all consents of a person who has left. Takes no lock."""
    SharedCatch.objects.filter(annotator=annotator).delete()


@register_quarter_hourly(
    counts="first catches of a slice", why="A first in a slice is marked for ever."
)
def store_first_catches() -> int:
    """Store the first catch of each new slice that has catches decided within LOOK_BACK_TIME.

    A slice is new if none of its catches is stored. Return how many were. Takes no lock: the
    constraint `first_catch_once` keeps a second worker from storing another one. A catch that is
    overturned later stays the first.
    """
    recent_catches = select_decided_catches().filter(
        consensus__decided_at__gte=timezone.now() - LOOK_BACK_TIME
    )
    recent_keys = {key for key, _id in iter_slices(recent_catches)}
    stored_rows = FirstCatch.objects.filter(round__in={key.round for key in recent_keys})
    stored_keys = {SliceKey(*row) for row in stored_rows.values_list("round", "slice", "value")}
    new_keys = recent_keys - stored_keys
    # Of a slice that is new all catches count, since history may have been imported.
    catches_of_new_rounds = select_decided_catches().filter(
        round__in={key.round for key in new_keys}
    )
    first_ids = find_first_catches(iter_slices(catches_of_new_rounds)) if new_keys else {}
    rows = []
    for key in sorted(new_keys):
        row = FirstCatch(round_id=key.round, slice=key.slice, value=key.value)
        row.example_id = first_ids[key]
        rows.append(row)
    # Another worker may have stored a slice's first catch meanwhile; that one stays.
    FirstCatch.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


def select_decided_catches() -> QuerySet[Example]:
    """Return people's decided catches, in the order of the decisions."""
    catches = Example.objects.filter(
        build_try_condition(),
        build_measure_condition("catches"),
        annotator__isnull=False,
        consensus__decided_at__isnull=False,
    )
    # Whole texts are not needed to know a slice, but fields of labels stand among them.
    return catches.order_by("consensus__decided_at", "pk").select_related("round__task", "context")


def iter_slices(catches: QuerySet[Example]) -> Iterator[tuple[SliceKey, int]]:
    """Yield (slice, example id) for each slice of each catch, except in sensitive tasks."""
    for example in catches.iterator(chunk_size=500):
        task = example.round.task
        if task.is_sensitive:
            continue
        slices = list_slices(
            task.config.slices,
            _list_label_fields(task.config),
            challenge=example.challenge,
            tag=example.context.tag,
            values={**example.context.fields, **example.inputs},
        )
        for name, value in slices:
            yield SliceKey(example.round_id, name, value), example.pk


def _list_label_fields(config: TaskConfig) -> list[str]:
    """Return the slices of the task that are fields with labels."""
    fields = [name for name in config.slices if name not in SLICES_WITHOUT_FIELD]
    return [name for name in fields if config.get_labels(name)]
