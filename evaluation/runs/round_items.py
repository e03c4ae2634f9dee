"""Read the properties of a round's examples as soon as people have judged them. Loads scipy.

The round needs no test set yet. People's numbers come from the votes, by the same estimators as
those of a set's items (`evaluation.runs.item_services`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Count, Q

from annotation.models import Example, TargetOutput
from evaluation.models import ItemProperty
from evaluation.runs.item_services import describe_votes, find_right_choices, read_votes
from evaluation.task_shape import get_labels
from tasks.config.schema import TaskConfig


class RoundItem(NamedTuple):
    """The properties of an example of a round; None where too few answers or votes tell them.

    models, models_right: of the models that were asked when it was written. people_wrong: the
    chance (0-1) that a person gives another answer than the author. ambiguity: the chance that two
    people disagree. Both have 95% intervals. The others are those of its last test set
    (`ItemProperty`), and label_may_be_wrong is None before a set's items were estimated.
    """

    example: UUID
    models: int
    models_right: int
    votes: int
    people_wrong: float | None = None
    people_wrong_low: float | None = None
    people_wrong_high: float | None = None
    ambiguity: float | None = None
    ambiguity_low: float | None = None
    ambiguity_high: float | None = None
    difficulty: float | None = None
    difficulty_error: float | None = None
    discrimination: float | None = None
    discrimination_error: float | None = None
    label_may_be_wrong: bool | None = None


SET_COLUMNS = (
    "difficulty",
    "difficulty_error",
    "discrimination",
    "discrimination_error",
    "label_may_be_wrong",
)


def describe_round_items(config: TaskConfig, examples: Sequence[Example]) -> list[RoundItem]:
    """Return the properties of these examples of one task, in their order. Three queries."""
    ids = [example.pk for example in examples]
    votes = read_votes(ids)
    counted_answers = _count_answers(ids)
    set_items = _find_set_items(ids)
    labels = get_labels(config)
    items = []
    for example in examples:
        model_count, right_count = counted_answers.get(example.pk, (0, 0))
        # Free answers and conversations have none: then only a verdict can agree.
        author_answer = example.inputs.get(config.answer_field)
        answers = [] if author_answer is None else [author_answer]
        right_choices = find_right_choices(config, example.outcome, answers)
        items.append(
            RoundItem(
                example=example.uuid,
                models=model_count,
                models_right=right_count,
                **describe_votes(votes.get(example.pk, ()), right_choices, labels),
                **set_items.get(example.pk, {}),
            )
        )
    return items


def _count_answers(ids: Sequence[int]) -> Mapping[int, tuple[int, int]]:
    """Return how many models answered each example, and how many rightly, by example id."""
    # Without an outcome nobody knows whether the answer is right.
    rows = TargetOutput.objects.filter(example__in=ids, fooled__isnull=False).order_by()
    counts = rows.values_list("example").annotate(
        answered=Count("pk"), right=Count("pk", filter=Q(fooled=False))
    )
    return {example_id: (answered, right) for example_id, answered, right in counts}


def _find_set_items(ids: Sequence[int]) -> Mapping[int, dict[str, Any]]:
    """Return what the last estimate of a test set says of each example, by example id."""
    rows = ItemProperty.objects.filter(example__in=ids).order_by("fit__fitted_at", "pk")
    items_by_example: dict[int, dict[str, Any]] = {}
    for values in rows.values("example", *SET_COLUMNS):
        # The last one of an example wins, as it is from the most models.
        items_by_example[values.pop("example")] = values
    return items_by_example
