"""The guided tour as people see it: Markdown, and items of the task as judges read them.

Items have no label and no model's answer. They are chosen only from what participants may see:
examples on the task page, released training rows, gold items that the owner names, and contexts in
use. Rows on which models are tested are never shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from random import Random
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils.safestring import SafeString

from annotation.answers import exclude_sealed_examples, filter_open_answers
from annotation.models import Example
from annotation.writing.result_panel import list_shown_fields
from core.text.markdown import render_markdown
from dynabench.campaigns.models import Campaign
from dynabench.campaigns.rules.tour import Placeholder, list_placeholders, parse_tour
from tasks.models import Context, Task
from validation.judging.page import list_inputs_with_criteria

MAX_RELEASED_ROWS = 50
"""The number of newest released rows from which items are drawn."""


@dataclass(frozen=True)
class TourItem:
    """An item of the tour: the fields of its context and inputs, each as (label, text or markup).

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
    placeholders = list_placeholders(steps)
    named_items = find_named_items(campaign.task, placeholders)
    # Drawn only where a place asks for any item: a draw costs a query.
    has_free_placeholder = any(not placeholder.name for placeholder in placeholders)
    drawn_items = iter(_draw_items(campaign) if has_free_placeholder else [])
    tour: list[list[TourPart]] = []
    for step in steps:
        step_parts = []
        for text_or_placeholder in step:
            if isinstance(text_or_placeholder, str):
                step_parts.append(TourPart(words=render_markdown(text_or_placeholder)))
                continue
            item = (
                named_items.get(text_or_placeholder)
                if text_or_placeholder.name
                else next(drawn_items, None)
            )
            if item:
                step_parts.append(TourPart(item=item))
        tour.append(step_parts)
    return tour


def find_named_items(
    task: Task, placeholders: Sequence[Placeholder]
) -> dict[Placeholder, TourItem]:
    """Return the items that the placeholders name and participants may see, by placeholder.

    At most two queries.
    """
    uuids, context_ids = [], []
    for placeholder in placeholders:
        if placeholder.kind == "context":
            context_ids.append(placeholder.name)
        elif placeholder.name:
            uuids.append(placeholder.name)
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
    example_ids = []
    for part in chain.from_iterable(tour):
        # Contexts and the task page's own examples are no stored examples.
        if part.item and part.item.example:
            example_ids.append(part.item.example)
    return example_ids


def list_named_uuids(campaign: Campaign) -> list[UUID]:
    """Return the UUIDs of the examples that the tour names.

    A person who saw one of them must not be tested with it.
    """
    placeholders = list_placeholders(parse_tour(campaign.tour))
    return [
        UUID(placeholder.name)
        for placeholder in placeholders
        if placeholder.kind == "item" and placeholder.name
    ]


def _select_showable_examples(task: Task) -> QuerySet[Example]:
    """Return released training examples and gold items, except those that models are tested on."""
    rows = Example.objects.filter(round__task=task, retracted_at=None)
    is_public = Q(pk__in=_select_released_examples(task)) | Q(gold__isnull=False)
    return exclude_sealed_examples(rows).filter(is_public).select_related("context")


def _select_released_examples(task: Task) -> QuerySet[Example]:
    """Return the task's released training examples, without gold items."""
    return filter_open_answers(Example.objects.filter(round__task=task))


def _draw_items(campaign: Campaign) -> list[TourItem]:
    """Return the task's sample answers and then released examples, each group shuffled.

    The order depends only on the campaign's slug.
    """
    # Seeded by the campaign, so that everybody sees the same tour. Chance, no secret.
    task, random = campaign.task, Random(campaign.slug)
    page_examples = [
        # Not stored: rows of the same shape, so that one function shows all of them.
        Example(inputs=dict(example.input), context=Context(fields=dict(example.context)))
        for example in task.config.examples.good + task.config.examples.bad
    ]
    released_rows = _select_released_examples(task).select_related("context")
    released_examples = list(released_rows.order_by("-pk")[:MAX_RELEASED_ROWS])
    items = []
    for group in (page_examples, released_examples):
        for example in random.sample(group, len(group)):
            items.append(_build_item(task, example))
    return items


def _build_item(task: Task, example: Example) -> TourItem:
    """Return an example as the tour shows it, without its label or the model's answer."""
    config = task.config
    return TourItem(
        list_shown_fields(config, example.context),
        list_inputs_with_criteria(config, example),
        example.pk,
    )
