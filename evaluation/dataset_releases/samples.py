"""Show a few rows of a released version on its page, in the words of the task."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Prefetch
from django.utils.text import Truncator

from annotation.answers import filter_open_answers
from annotation.models import Example, TargetOutput
from annotation.writing.result_panel import format_answer, list_context_fields
from evaluation.dataset_releases.reading import mark_unused_releases
from evaluation.dataset_releases.undo_services import is_any_release_unused
from evaluation.models import Dataset, DatasetItem
from tasks.permissions import Person, can_read
from validation.judging.page import describe_author_claim
from validation.rewards.scores import extract_written_text

SAMPLE_SIZE = 5
MAX_TEXT_CHARS = 200


@dataclass(frozen=True)
class SampleRow:
    """A row of a released version as its page shows it.

    context: (title, text or markup) of what the author read. text: what the author wrote.
    answer: the author's answer. model_answers: the models' answers, each once. fooled: whether
    the author's text fooled a model.
    """

    uuid: UUID
    context: list[tuple[str, str]]
    text: str
    answer: str
    model_answers: Sequence[str]
    fooled: bool


def show_sample_rows(reader: Person, dataset: Dataset) -> list[SampleRow]:
    """Return the first open rows of the version's training split.

    While the release can be undone, only those who may read the task's answers see rows, and never
    judge. Rows that a version tests on or holds back are never shown.
    """
    items = dataset.items.filter(
        split=DatasetItem.Split.TRAIN,
        is_withdrawn=False,
        example__in=filter_open_answers(Example.objects.all()),
    )
    # In the order of the file, so that a reader finds these rows at its beginning.
    example_ids = items.order_by("position").values_list("example", flat=True)[:SAMPLE_SIZE]
    outputs = TargetOutput.objects.order_by("position")
    samples = (
        Example.objects.filter(pk__in=list(example_ids))
        .select_related("round__task", "context")
        .prefetch_related(Prefetch("target_outputs", outputs))
    )
    examples = list(mark_unused_releases(samples).order_by("pk"))
    # A visit to the page must not make a release final, as reading its files does. The role is
    # asked for only while it matters.
    if is_any_release_unused(examples) and not can_read(reader, dataset.round.task):
        return []
    return [_build_row(example) for example in examples]


def _build_row(example: Example) -> SampleRow:
    config = example.round.task.config
    outputs = list(example.target_outputs.all())
    answers = [format_answer(config, output.output) for output in outputs]
    context = []
    for title, value in list_context_fields(config, example.context):
        # A picture or a recording is markup, which must not be cut.
        context.append((title, value if hasattr(value, "is_markup") else _shorten(value)))
    return SampleRow(
        uuid=example.uuid,
        context=context,
        text=_shorten(extract_written_text(config, example.inputs)),
        answer=describe_author_claim(config, example),
        # Several models may have given the same answer.
        model_answers=list(dict.fromkeys(filter(None, answers))),
        fooled=example.outcome == Example.Outcome.FOOLED,
    )


def _shorten(text: str) -> str:
    """Return the text as one line of at most MAX_TEXT_CHARS characters."""
    return Truncator(" ".join(text.split())).chars(MAX_TEXT_CHARS)
