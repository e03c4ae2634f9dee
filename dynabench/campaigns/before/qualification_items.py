"""The test of a campaign as its page shows it: gold items that the person has not seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from django.db.models import QuerySet

from annotation.answers import exclude_sealed
from annotation.models import Example
from annotation.writing import result_panel
from dynabench.campaigns.before.tour import list_named_uuids
from dynabench.campaigns.models import Campaign, Place, Qualification
from validation.judging.page import shown_inputs
from validation.judging.wording import choices, legend
from validation.models import Gold


@dataclass(frozen=True)
class Item:
    """One item of a qualification test: its texts, the question and the possible answers.

    earlier_answer: the answer that the person gave before, or empty.
    """

    example: Example
    context: list[tuple[str, str]]
    inputs: list[tuple[str, str]]
    asks: str
    answers: list[tuple[str, str]]
    said: str = ""


def select_test_golds(campaign: Campaign) -> QuerySet[Gold]:
    """Return the gold items that the campaign's test may use.

    Excludes items that the tour shows, and those on which models are evaluated, because the
    test reveals the right answers after each try.
    """
    open_examples = exclude_sealed(
        Example.objects.filter(round__task=campaign.task_id, retracted_at=None)
    )
    # The tour shows its items with everything around them, so they test nobody.
    rows = Gold.objects.filter(example__in=open_examples)
    return rows.exclude(example__uuid__in=list_named_uuids(campaign))


def count_needed_items(campaign: Campaign) -> int:
    """Return the number of gold items that all tries of one person take, without repetition."""
    return campaign.test_items * campaign.test_tries


def draw_test_items(place: Place, tries: int) -> list[Gold]:
    """Return the gold items of the person's next try, the same until they are answered.

    Excludes items that the person wrote or has already seen. Empty if too few are left.
    tries: number of tries so far.
    """
    campaign, me = place.campaign, place.annotator_id
    unseen = (
        select_test_golds(campaign).exclude(answers__validator=me).exclude(example__annotator=me)
    )
    unseen = unseen.exclude(example__shown_to__annotator=me)
    # In a fixed order, so that the seed draws the same items each time the page is opened.
    candidates = list(unseen.select_related("example__context", "example__round").order_by("pk"))
    if len(candidates) < campaign.test_items:
        return []
    # Chance, no secret: who guesses the seed knows items, not their answers.
    return Random(f"{place.pk} {tries}").sample(candidates, campaign.test_items)


def lacks_items(campaign: Campaign, row: Qualification, golds: Sequence[Gold]) -> bool:
    """Return whether the person must still pass a test but too few items are left for it.

    golds: the result of `draw_test_items`.
    """
    return bool(campaign.test_items) and row.passed_at is None and not golds


def show_item(place: Place, gold: Gold, earlier_answer: str = "") -> Item:
    """Return a gold item as the judging page shows it, without its label.

    earlier_answer: the answer that the person gave before, or empty.
    """
    config, example = place.campaign.task.config, gold.example
    return Item(
        example,
        list(result_panel.list_shown_fields(config, example.context)),
        shown_inputs(config, example),
        legend(config, example),
        choices(config, example),
        earlier_answer,
    )
