"""A gallery of other people's released examples that fooled a model, shown to authors."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Prefetch, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotation.aids.registry import Aid
from annotation.answers import filter_open_answers
from annotation.models import Assignment, Example, ShownExample, TargetOutput
from annotation.questions import build_catch_condition, select_catches_between
from annotation.refusals import CapReached
from annotation.rules.prompt import list_fields_to_read
from annotation.selectors import select_released_before
from annotation.shown_services import note_shown_examples
from core.days import get_midnight
from tasks.config.schema import TaskConfig
from tasks.contexts.media.markup import render_value
from tasks.models import Round

MAX_GALLERY_EXAMPLES = 5
MAX_CANDIDATES = 50
"""The number of examples read per round. The gallery shows some of them."""
MAX_ROUNDS = 3
"""The number of released rounds to search, the newest first, before the assignment's round."""
MAX_PER_DAY = 50
"""The maximum number of new examples that the gallery shows a person per day."""


@dataclass(frozen=True)
class GalleryExample:
    """An example as the gallery shows it.

    context_fields, written_fields: a (title, text) pair for each field of the context and of the
    example. answers: the answers of the models that were fooled.
    """

    context_fields: Sequence[tuple[str, str]]
    written_fields: Sequence[tuple[str, str]]
    answers: Sequence[str]


def choose_gallery_examples(assignment: Assignment) -> None:
    """Choose the gallery's examples for this assignment, on the first request only.

    Stores them with the assignment, and records that the person has seen them. As long as no
    example is available, each request tries again. Takes no lock. Raises CapReached.
    """
    if assignment.worked:
        return
    _check_may_see_more(assignment)
    assignment.worked = _draw_examples(assignment)
    note_shown_examples(
        annotator=assignment.annotator, examples=assignment.worked, way=ShownExample.Way.GALLERY
    )
    assignment.save(update_fields=["worked"])


def _check_may_see_more(assignment: Assignment) -> None:
    shown_today = ShownExample.objects.filter(
        annotator=assignment.annotator_id,
        way=ShownExample.Way.GALLERY,
        shown_at__gte=get_midnight(),
    )
    if shown_today.count() >= MAX_PER_DAY:
        raise CapReached(
            _("You've reached today's maximum of examples (%(number)d). Try again tomorrow.")
            % {"number": MAX_PER_DAY}
        )


def list_gallery_examples(assignment: Assignment) -> Sequence[GalleryExample]:
    """Return the assignment's gallery examples that may still be shown."""
    config, example_ids = assignment.round.task.config, assignment.worked or []
    answers = TargetOutput.objects.filter(fooled=True)
    examples = (
        _select_showable(assignment)
        .filter(pk__in=example_ids)
        .select_related("context")
        .prefetch_related(Prefetch("target_outputs", answers))
        .in_bulk()
    )

    def build_titled_pairs(values: dict[str, Any]) -> list[tuple[str, str]]:
        return [
            (config.get_component(name).third_person_title, render_value(config, name, value))
            for name, value in values.items()
        ]

    def build_gallery_example(example: Example) -> GalleryExample:
        inputs = {c.name: example.inputs.get(c.name) for c in config.input}
        field = config.answer_field
        answer_words = (
            config.display(field, o.output.get(field)) for o in example.target_outputs.all()
        )
        return GalleryExample(
            build_titled_pairs(list_fields_to_read(config, example.context.fields)),
            build_titled_pairs(
                {name: value for name, value in inputs.items() if value not in (None, "", [])}
            ),
            # Several models may have given the same answer.
            list(dict.fromkeys(filter(None, answer_words))),
        )

    # Some may have been withdrawn or sealed since they were chosen.
    return [build_gallery_example(examples[pk]) for pk in example_ids if pk in examples]


def _select_showable(assignment: Assignment) -> QuerySet[Example]:
    """Return other people's catches with public answers, written about other contexts."""
    catches = Example.objects.filter(build_catch_condition(), by_program=False)
    other_catches = catches.exclude(annotator=assignment.annotator_id)
    # By digest, because each round has its own copy of a context.
    return filter_open_answers(other_catches).exclude(context__digest=assignment.context.digest)


def _draw_examples(assignment: Assignment) -> list[int]:
    """Draw up to MAX_GALLERY_EXAMPLES example ids, from the newest rounds first.

    The examples have different contexts if possible.
    """
    # Seeded, so that two requests at once choose the same examples for an assignment.
    rng, round = random.Random(assignment.pk), assignment.round
    rounds = select_released_before(round).order_by("-number")[:MAX_ROUNDS]
    example_ids: list[int] = []
    for earlier_round in rounds:
        context_by_example = _draw_candidates(_select_showable(assignment), earlier_round, rng)
        first = {context: pk for pk, context in context_by_example.items()}.values()
        example_ids += [*first, *(pk for pk in context_by_example if pk not in first)]
        if len(example_ids) >= MAX_GALLERY_EXAMPLES:
            break
    return example_ids[:MAX_GALLERY_EXAMPLES]


def _draw_candidates(
    examples: QuerySet[Example], round: Round, rng: random.Random
) -> dict[int, int]:
    """Draw up to MAX_CANDIDATES of a round's examples; return {example id: context id}.

    Reads the examples starting at a random id, in the order of the index `consensus_errors`. So
    every example can be drawn, and few rows are read. The result is in random order.
    """
    ids = Example.objects.filter(round=round).order_by("pk").values_list("pk", flat=True)
    first_id, last_id = ids.first(), ids.last()
    if first_id is None or last_id is None:
        return {}
    start = rng.randint(first_id, last_id)
    pairs: list[tuple[int, int]] = []
    # From the drawn id to the end, then from the beginning, so that all can be reached.
    for low, high in ((start, last_id), (first_id, start - 1)):
        in_order = select_catches_between(examples, round, low, high).values_list("pk", "context")
        pairs += in_order[: MAX_CANDIDATES - len(pairs)]
    rng.shuffle(pairs)
    return dict(pairs)


class ExampleGallery(Aid, name="examples"):
    """A writing aid that shows others' examples that fooled a model."""

    label = gettext_lazy("See examples that worked")
    place = 1
    template = "annotation/ideas/_examples.html"

    def is_allowed(self, config: TaskConfig) -> bool:
        """Return whether the task lets people see others' examples."""
        return bool(config.support and config.support.examples)

    def provide_help(
        self, assignment: Assignment, button_value: str, typed_values: Mapping[str, Any]
    ) -> None:
        """Choose the examples that the gallery shows for the assignment. Raises CapReached."""
        choose_gallery_examples(assignment)
