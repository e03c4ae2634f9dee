"""Read the properties of a version's items, for pages, files and the API."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, Q, QuerySet

from evaluation.models import EvaluationSetVersion, ItemFit, ItemProperty
from evaluation.test_sets.selectors import read_input_rows

MIN_MODELS = 20
"""With fewer models, items can't be estimated."""
MAX_ITEMS = 20_000
"""The largest set whose items are estimated."""
ORDERS = {
    "doubtful": ("-label_may_be_wrong", F("discrimination").asc(nulls_last=True)),
    "drifted": ("-has_drifted", F("drift").desc(nulls_last=True)),
    "translated": ("-differs_from_translation", F("translation_shift").asc(nulls_last=True)),
    "hard": (F("right_share").asc(),),
    "telling": (F("discrimination").desc(nulls_last=True),),
    "ambiguous": (F("ambiguity").desc(nulls_last=True),),
    "set": (),
}
"""The orders of the list of items, by name; the position in the set breaks ties."""
CSV_COLUMNS = (
    *("position", "uid", "right_share", "difficulty", "difficulty_error", "discrimination"),
    *("discrimination_error", "label_may_be_wrong", "drift", "drift_error", "has_drifted"),
    *("language", "translation_shift", "translation_shift_error", "differs_from_translation"),
    *("votes", "people_wrong", "people_wrong_low"),
    *("people_wrong_high", "ambiguity", "ambiguity_low", "ambiguity_high"),
)


@dataclass(frozen=True)
class ShownItem:
    """An item with the text of its inputs."""

    item: ItemProperty
    text: str


def find_fit(version: EvaluationSetVersion) -> ItemFit | None:
    """Return the last estimate of a version's items, or None before there is one."""
    return ItemFit.objects.filter(version=version).first()


def select_items(fit: ItemFit, order: str) -> QuerySet[ItemProperty]:
    """Return the items in one of `ORDERS`, with their examples."""
    return fit.items.select_related("example").order_by(*ORDERS[order], "position")


def count_marks(fit: ItemFit) -> dict[str, int]:
    """Return how many items have a mark: doubtful labels, drift, bad translations. One query."""
    has_drifted = Q(has_drifted=True)
    return fit.items.order_by().aggregate(
        doubtful=Count("pk", filter=Q(label_may_be_wrong=True)),
        easier=Count("pk", filter=has_drifted & Q(drift__gt=0)),
        harder=Count("pk", filter=has_drifted & Q(drift__lt=0)),
        translations=Count("pk", filter=Q(differs_from_translation=True)),
    )


def add_texts(version: EvaluationSetVersion, items: Sequence[ItemProperty]) -> list[ShownItem]:
    """Return the items with their texts, which only the version's file has."""
    items_by_position = {item.position: item for item in items}
    texts: dict[int, str] = {}
    for position, row in enumerate(read_input_rows(version)):
        if position in items_by_position:
            texts[position] = _join_texts(row["inputs"])
        # A page has few items, so the file is seldom read to its end.
        if len(texts) == len(items_by_position):
            break
    return [ShownItem(item, texts.get(item.position, "")) for item in items]


def _join_texts(inputs: Mapping[str, Any]) -> str:
    """Return the texts of an example's fields; pictures and numbers are left out."""
    return " · ".join(value for value in inputs.values() if isinstance(value, str))


def iterate_csv_rows(fit: ItemFit) -> Iterator[Sequence[Any]]:
    """Yield the heading and a row for each item, in the order of the set."""
    yield CSV_COLUMNS
    yield from fit.items.order_by("position").values_list(*CSV_COLUMNS)
