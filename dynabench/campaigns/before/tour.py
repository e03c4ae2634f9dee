"""The guided tour as people see it: Markdown, and items of the task as judges read them.

An item shows no label and no model's answer. Only what may be known is shown: the task page's own
examples, rows of a release's training split, gold items that the owner names, contexts in use.
Rows that models are tested on are none of these.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils.safestring import SafeString

from annotation.answers import not_sealed, with_open_answers
from annotation.models import Example
from annotation.writing.result_panel import shown_context
from core.text.markdown import render_markdown
from dynabench.campaigns.models import Campaign
from dynabench.campaigns.rules.tour import Named, named_in, steps_of
from tasks.models import Context, Task
from validation.judging.page import shown_inputs

MOST = 50
"""Released rows among which items are drawn."""


@dataclass(frozen=True)
class Shown:
    """One item: (label, words or markup) of what was given, and of what somebody wrote."""

    context: Sequence[tuple[str, str]]
    inputs: Sequence[tuple[str, str]] = ()
    example: int | None = None


@dataclass(frozen=True)
class Part:
    """A part of a step: words, or an item."""

    words: SafeString | None = None
    item: Shown | None = None


def tour_of(campaign: Campaign) -> list[list[Part]]:
    """The steps, always with the same items; an item that may not be shown any more is left out."""
    steps = steps_of(campaign.tour)
    places = named_in(steps)
    found = named_items(campaign.task, places)
    drawn = iter(_drawn(campaign) if any(not one.name for one in places) else ())
    tour: list[list[Part]] = []
    for step in steps:
        parts = []
        for one in step:
            if isinstance(one, str):
                parts.append(Part(words=render_markdown(one)))
            elif item := found.get(one) if one.name else next(drawn, None):
                parts.append(Part(item=item))
        tour.append(parts)
    return tour


def named_items(task: Task, places: Sequence[Named]) -> dict[Named, Shown]:
    """Those of the named items that people may see; at most two queries."""
    uuids = [one.name for one in places if one.kind == "item" and one.name]
    numbers = [one.name for one in places if one.kind == "context"]
    found: dict[Named, Shown] = {}
    for example in _showable(task).filter(uuid__in=uuids) if uuids else ():
        found[Named("item", str(example.uuid))] = _shown(task, example)
    contexts = Context.objects.filter(round__task=task, is_retired=False)
    for context in contexts.filter(pk__in=numbers) if numbers else ():
        found[Named("context", str(context.pk))] = Shown(shown_context(task.config, context))
    return found


def examples_in(tour: Sequence[Sequence[Part]]) -> list[int]:
    """Return the ids of the stored examples among the items of a tour."""
    items = [part.item for step in tour for part in step if part.item]
    return [item.example for item in items if item.example]


def gold_in(campaign: Campaign) -> list[UUID]:
    """The examples that the tour names: who saw one is not tested with it."""
    places = named_in(steps_of(campaign.tour))
    return [UUID(one.name) for one in places if one.kind == "item" and one.name]


def _showable(task: Task) -> QuerySet[Example]:
    """Examples of a public training split, and gold items that no model is tested on."""
    rows = Example.objects.filter(round__task=task, retracted_at=None)
    may = Q(pk__in=_released(task)) | Q(gold__isnull=False)
    return not_sealed(rows).filter(may).select_related("context")


def _released(task: Task) -> QuerySet[Example]:
    """Rows to train on that are no gold items."""
    return with_open_answers(Example.objects.filter(round__task=task))


def _drawn(campaign: Campaign) -> list[Shown]:
    """The task page's own examples, then released ones that are no gold, each in an own order."""
    task, random = campaign.task, Random(campaign.slug)  # chance, no secret
    told = [*task.config.examples.good, *task.config.examples.bad]
    rows = _released(task).select_related("context")
    later = list(rows.order_by("-pk")[:MOST])
    made = [
        Example(inputs=dict(one.input), context=Context(fields=dict(one.context))) for one in told
    ]
    return [
        _shown(task, one) for group in (made, later) for one in random.sample(group, len(group))
    ]


def _shown(task: Task, example: Example) -> Shown:
    config = task.config
    return Shown(shown_context(config, example.context), shown_inputs(config, example), example.pk)
