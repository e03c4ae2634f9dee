"""The test of a campaign as its page shows it: gold items that the person has not seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from django.db.models import QuerySet

from annotation.answers import not_sealed
from annotation.models import Example
from annotation.writing import result_panel
from dynabench.campaigns.before.tour import gold_in
from dynabench.campaigns.models import Campaign, Place, Qualification
from validation.judging.page import shown_inputs
from validation.judging.wording import choices, legend
from validation.models import Gold


@dataclass(frozen=True)
class Item:
    """One item of a test: what is read, what is asked, what may be answered."""

    example: Example
    context: list[tuple[str, str]]
    inputs: list[tuple[str, str]]
    asks: str
    answers: list[tuple[str, str]]
    said: str = ""


def golds_of(campaign: Campaign) -> QuerySet[Gold]:
    """Return the gold items that may test somebody, without those that the tour shows.

    Not those that models are tested on: after a try the answers are shown.
    """
    open_examples = not_sealed(
        Example.objects.filter(round__task=campaign.task_id, retracted_at=None)
    )
    # The tour shows its items with everything around them, so they test nobody.
    rows = Gold.objects.filter(example__in=open_examples)
    return rows.exclude(example__uuid__in=gold_in(campaign))


def items_needed(campaign: Campaign) -> int:
    """Return how many gold items the tries of one person take, as nobody gets an item twice."""
    return campaign.test_items * campaign.test_tries


def items_of(place: Place, tries: int) -> list[Gold]:
    """Return the gold items of a try: the same until they are answered.

    Empty where too few are left. None that the person has written, or has seen elsewhere.
    """
    campaign, me = place.campaign, place.annotator_id
    unseen = golds_of(campaign).exclude(answers__validator=me).exclude(example__annotator=me)
    unseen = unseen.exclude(example__shown_to__annotator=me)
    # In a fixed order, so that the seed draws the same items each time the page is opened.
    left = list(unseen.select_related("example__context", "example__round").order_by("pk"))
    if len(left) < campaign.test_items:
        return []
    # Chance, no secret: who guesses the seed knows items, not their answers.
    return Random(f"{place.pk} {tries}").sample(left, campaign.test_items)


def lacks_items(campaign: Campaign, row: Qualification, golds: Sequence[Gold]) -> bool:
    """Return whether there is a test to pass and too few items are left for it.

    golds: as `items_of` returns them.
    """
    return bool(campaign.test_items) and row.passed_at is None and not golds


def show_item(place: Place, gold: Gold, said: str = "") -> Item:
    """Return an item as the judge page shows it, without its label.

    said: the answer that was given before.
    """
    config, example = place.campaign.task.config, gold.example
    return Item(
        example,
        list(result_panel.shown_context(config, example.context)),
        shown_inputs(config, example),
        legend(config, example),
        choices(config, example),
        said,
    )
