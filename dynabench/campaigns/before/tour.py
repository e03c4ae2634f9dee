"""The guided tour as people see it: Markdown, and items of the task as judges read them.

An item shows no label and no model's answer. Only what may be known is shown: the task page's own
examples, rows of a release's training split, gold items that the owner names, contexts in use.
Rows that models are tested on are none of these.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from random import Random
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils.safestring import SafeString

from annotation.answers import exclude_sealed, filter_open_answers
from annotation.models import Example
from annotation.writing.result_panel import list_shown_fields
from core.text.markdown import render_markdown
from dynabench.campaigns.models import Campaign
from dynabench.campaigns.rules.tour import Placeholder, list_placeholders, parse_tour
from tasks.models import Context, Task
from validation.judging.page import shown_inputs

MAX_RELEASED_ROWS = 50
"""The newest released rows, among which items are drawn."""


@dataclass(frozen=True)
class TourItem:
    """An item of the tour: its context and inputs, each as (label, text or markup).

    example: id of the stored example, or None.
    """

    context: Sequence[tuple[str, str]]
    inputs: Sequence[tuple[str, str]] = ()
    example: int | None = None


@dataclass(frozen=True)
class TourPart:
    """A part of a tour step: either rendered text or an item."""

    words: SafeString | None = None
    item: TourItem | None = None


def build_tour(campaign: Campaign) -> list[list[TourPart]]:
    """Return the steps of a campaign's tour. Everybody sees the same items.

    Items that may no longer be shown are left out.
    """
    steps = parse_tour(campaign.tour)
    places = list_placeholders(steps)
    named_items = find_named_items(campaign.task, places)
    # Drawn only where a place asks for any item: a draw costs a query.
    has_free_place = any(not place.name for place in places)
    drawn_items = iter(_draw_items(campaign) if has_free_place else [])
    tour: list[list[TourPart]] = []
    for step in steps:
        parts = []
        for text_or_place in step:
            if isinstance(text_or_place, str):
                parts.append(TourPart(words=render_markdown(text_or_place)))
                continue
            item = named_items.get(text_or_place) if text_or_place.name else next(drawn_items, None)
            if item:
                parts.append(TourPart(item=item))
        tour.append(parts)
    return tour


def find_named_items(task: Task, places: Sequence[Placeholder]) -> dict[Placeholder, TourItem]:
    """Return the named items that participants may see, by their placeholder.

    At most two queries.
    """
    uuids, context_ids = [], []
    for place in places:
        if place.kind == "context":
            context_ids.append(place.name)
        elif place.name:
            uuids.append(place.name)
    # At most one query for each kind of place, however long the tour is.
    items: dict[Placeholder, TourItem] = {}
    if uuids:
        for example in _select_showable_examples(task).filter(uuid__in=uuids):
            items[Placeholder("item", str(example.uuid))] = _build_item(task, example)
    if context_ids:
        contexts = Context.objects.filter(round__task=task, is_retired=False)
        for context in contexts.filter(pk__in=context_ids):
            items[Placeholder("context", str(context.pk))] = TourItem(
                list_shown_fields(task.config, context)
            )
    return items


def list_example_ids(tour: Sequence[Sequence[TourPart]]) -> list[int]:
    """Return the ids of the stored examples among a tour's items."""
    ids = []
    for part in chain.from_iterable(tour):
        # Contexts and the task page's own examples are no stored examples.
        if part.item and part.item.example:
            ids.append(part.item.example)
    return ids


def list_named_uuids(campaign: Campaign) -> list[UUID]:
    """Return the UUIDs of the examples that the tour names.

    A person who saw one of them must not be tested with it.
    """
    places = list_placeholders(parse_tour(campaign.tour))
    return [UUID(place.name) for place in places if place.kind == "item" and place.name]


def _select_showable_examples(task: Task) -> QuerySet[Example]:
    """Return examples of public training splits, and gold on which no model is evaluated."""
    rows = Example.objects.filter(round__task=task, retracted_at=None)
    is_public = Q(pk__in=_select_released_examples(task)) | Q(gold__isnull=False)
    return exclude_sealed(rows).filter(is_public).select_related("context")


def _select_released_examples(task: Task) -> QuerySet[Example]:
    """Return the task's released training examples, without gold items."""
    return filter_open_answers(Example.objects.filter(round__task=task))


def _draw_items(campaign: Campaign) -> list[TourItem]:
    """Return the task's sample answers, then released examples, each group in random order."""
    # Seeded by the campaign, so that everybody sees the same tour. Chance, no secret.
    task, random = campaign.task, Random(campaign.slug)
    page_examples = [
        # Not stored: rows of the same shape, so that one function shows all of them.
        Example(inputs=dict(example.input), context=Context(fields=dict(example.context)))
        for example in task.config.examples.good + task.config.examples.bad
    ]
    released_rows = _select_released_examples(task).select_related("context")
    released = list(released_rows.order_by("-pk")[:MAX_RELEASED_ROWS])
    items = []
    for group in (page_examples, released):
        for example in random.sample(group, len(group)):
            items.append(_build_item(task, example))
    return items


def _build_item(task: Task, example: Example) -> TourItem:
    """Return an example as the tour shows it, without its label or the model's answer."""
    config = task.config
    return TourItem(
        list_shown_fields(config, example.context), shown_inputs(config, example), example.pk
    )
