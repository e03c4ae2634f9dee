"""The items of a campaign's test: gold items that the person has not seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from django.db.models import QuerySet

from annotation.answers import exclude_sealed_examples
from annotation.models import Example
from annotation.writing import result_panel
from dynabench.campaigns.before.tour import list_named_uuids
from dynabench.campaigns.models import Campaign, Place, Qualification
from validation.judging.page import list_inputs_with_criteria
from validation.judging.wording import build_choices, build_legend
from validation.models import Gold


@dataclass(frozen=True)
class QualificationItem:
    """One item of a qualification test: its texts, the question and the possible answers.

    asks: the question. earlier_answer: the person's answer in the last try, or "".
    """

    example: Example
    context: list[tuple[str, str]]
    inputs: list[tuple[str, str]]
    asks: str
    answers: list[tuple[str, str]]
    earlier_answer: str = ""


def select_test_gold_items(campaign: Campaign) -> QuerySet[Gold]:
    """Return the gold items that the campaign's test may use.

    Items that the tour shows are left out. So are items on which models are evaluated, because the
    test reveals the right answers after each try.
    """
    open_examples = exclude_sealed_examples(
        Example.objects.filter(round__task=campaign.task_id, retracted_at=None)
    )
    # The tour shows its items with everything around them, so they test nobody.
    rows = Gold.objects.filter(example__in=open_examples)
    return rows.exclude(example__uuid__in=list_named_uuids(campaign))


def count_needed_items(campaign: Campaign) -> int:
    """Return the number of gold items that one person needs for all tries, without repetition."""
    return campaign.test_items * campaign.test_tries


def draw_test_items(place: Place, tries: int) -> list[Gold]:
    """Return the gold items of the person's next try, the same until they are answered.

    Excludes items that the person wrote or has already seen. Empty if too few are left.
    tries: number of tries so far.
    """
    campaign, annotator_id = place.campaign, place.annotator_id
    unseen_golds = (
        select_test_gold_items(campaign)
        .exclude(answers__validator=annotator_id)
        .exclude(example__annotator=annotator_id)
    )
    unseen_golds = unseen_golds.exclude(example__shown_to__annotator=annotator_id)
    # In a fixed order, so that the seed draws the same items each time the page is opened.
    candidates = list(
        unseen_golds.select_related("example__context", "example__round").order_by("pk")
    )
    if len(candidates) < campaign.test_items:
        return []
    # Chance, no secret: who guesses the seed knows items, not their answers.
    return Random(f"{place.pk} {tries}").sample(candidates, campaign.test_items)


def lacks_test_items(campaign: Campaign, row: Qualification, golds: Sequence[Gold]) -> bool:
    """Return whether the person must still pass a test but too few items are left for it.

    golds: the result of `draw_test_items`.
    """
    return bool(campaign.test_items) and row.passed_at is None and not golds


def build_item(place: Place, gold: Gold, earlier_answer: str = "") -> QualificationItem:
    """Return a gold item as the judging page shows it, without its label.

    earlier_answer: the person's earlier answer, or "".
    """
    config, example = place.campaign.task.config, gold.example
    return QualificationItem(
        example,
        list(result_panel.list_shown_fields(config, example.context)),
        list_inputs_with_criteria(config, example),
        build_legend(config, example),
        build_choices(config, example),
        earlier_answer,
    )
