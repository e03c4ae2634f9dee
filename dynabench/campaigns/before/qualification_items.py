"""The test of a campaign as its page shows it: gold items that the person has not seen."""

from dataclasses import dataclass
from random import Random

from annotation.answers import not_sealed
from annotation.models import Example
from annotation.writing import result_panel
from dynabench.campaigns.before.tour import gold_in
from dynabench.campaigns.models import Place
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


def items_of(place: Place, tries: int) -> list[Gold]:
    """The gold items of a try: always the same until they are answered.

    None that the person has seen elsewhere, and none that models are tested on: answers are told.
    """
    campaign, seen = place.campaign, {"answers__validator": place.annotator_id}
    known = not_sealed(Example.objects.filter(round__task=campaign.task_id, retracted_at=None))
    known = known.exclude(shown_to__annotator=place.annotator_id)
    left = list(
        Gold.objects.filter(example__in=known)
        .exclude(**seen)
        .exclude(example__uuid__in=gold_in(campaign))
        .select_related("example__context", "example__round")
        .order_by("pk")
    )
    wanted = min(campaign.test_items, len(left))
    return Random(f"{place.pk} {tries}").sample(left, wanted)  # chance, no secret


def shown(place: Place, gold: Gold, said: str = "") -> Item:
    """An item as the judge page shows it, blind; said: what was answered before."""
    config, example = place.campaign.task.config, gold.example
    return Item(
        example,
        list(result_panel.shown_context(config, example.context)),
        shown_inputs(config, example),
        legend(config, example.outcome),
        choices(config, example.outcome),
        said,
    )
