"""Reads about catches: the public ones, and one person's own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Prefetch, QuerySet
from django.utils.text import Truncator

from annotation.answers import filter_open_answers
from annotation.models import Example, TargetOutput
from annotation.writing.result_panel import format_answer
from core.accounts.models import Annotator
from dynabench.catches.models import SharedCatch
from evaluation.dataset_releases.reading import mark_unused_releases
from tasks.models import Round, Task
from validation.decisions.counted import build_measure_condition, build_try_condition
from validation.judging.page import describe_author_claim
from validation.rewards.scores import extract_written_text

WALL_SIZE = 20
MAX_LINE_CHARS = 280
MAX_COMPARED_CATCHES = 200
"""The maximum number of a round's newest catches to choose the best ones from."""


@dataclass(frozen=True)
class CatchLine:
    """A catch in one line.

    text: only what the author wrote. answer: the author's answer, which people confirmed.
    models_said: the models' wrong answers. author: a pseudonym, or "" without consent. is_shared:
    whether the author agreed to a page of its own.
    """

    uuid: UUID
    round: int
    text: str
    answer: str
    models_said: Sequence[str]
    author: str
    is_shared: bool


def select_public_catches(task: Task) -> QuerySet[Example]:
    """Return the task's public catches, the newest first.

    Everybody who sees the task may see them. Sensitive tasks have none, because their texts are not
    shown for entertainment. Show them only with `services.show_catches`, which records that they
    are shown.
    """
    catches = Example.objects.filter(
        build_try_condition(), build_measure_condition("catches"), round__task=task
    )
    if task.is_sensitive:
        return catches.none()
    return mark_unused_releases(load_lines(filter_open_answers(catches))).order_by("-pk")


def load_lines(examples: QuerySet[Example]) -> QuerySet[Example]:
    """Return the examples together with what `build_line` reads.

    One query, and one for the answers. Of the models' answers, only the wrong ones are loaded.
    """
    # Right answers of other models of the round would only be in the way.
    wrong_outputs = TargetOutput.objects.filter(fooled=True).order_by("position")
    related = ("round__task", "context", "annotator", "shared_catch")
    return examples.select_related(*related).prefetch_related(
        Prefetch("target_outputs", wrong_outputs)
    )


def build_line(example: Example) -> CatchLine:
    """Return the line of an example that was loaded by `load_lines`."""
    config = example.round.task.config
    is_shared = has_standing_consent(example)
    answers = [format_answer(config, output.output) for output in example.target_outputs.all()]
    # A pseudonym joins all that somebody wrote, so it needs their consent.
    author = ""
    if is_shared and example.annotator:
        author = example.annotator.pseudonym
    return CatchLine(
        uuid=example.uuid,
        round=example.round.number,
        text=shorten_text(example),
        answer=describe_author_claim(config, example),
        # Several models may have given the same answer.
        models_said=list(dict.fromkeys(filter(None, answers))),
        author=author,
        is_shared=is_shared,
    )


def shorten_text(example: Example) -> str:
    """Return what the author wrote as one line of at most MAX_LINE_CHARS characters."""
    # Without the context: the line must fit, and a passage may have another licence.
    text = extract_written_text(example.round.task.config, example.inputs)
    return Truncator(" ".join(text.split())).chars(MAX_LINE_CHARS)


def has_standing_consent(example: Example) -> bool:
    """Return whether the author agreed to a page of the example and still has an account."""
    shared: SharedCatch | None = getattr(example, "shared_catch", None)
    author = example.annotator
    # Whoever left can no longer withdraw a consent, so it counts no longer.
    if shared is None or author is None or author.user_id is None:
        return False
    return shared.annotator_id == author.pk


def list_shared_catches(annotator: Annotator, max_count: int) -> list[Example]:
    """Return up to `max_count` of the person's examples that have a page, the newest consent first.

    Includes examples in tasks that the person may no longer see, because their consent can still be
    withdrawn. One query.
    """
    shared = SharedCatch.objects.filter(annotator=annotator).select_related("example__round__task")
    return [row.example for row in shared.order_by("-shared_at", "-pk")[:max_count]]


def select_own_catches(annotator: Annotator) -> QuerySet[Any]:
    """Return the person's catches, unordered."""
    return Example.objects.filter(
        build_try_condition(), build_measure_condition("catches"), annotator=annotator
    )


def find_best_catches(round: Round, max_count: int) -> list[Example]:
    """Return up to `max_count` public catches of the round, most confident mistakes first.

    The newest ones if the task hides its models' confidence. Only the MAX_COMPARED_CATCHES newest
    are compared. Two queries.
    """
    task = round.task
    examples = list(select_public_catches(task).filter(round=round)[:MAX_COMPARED_CATCHES])
    if task.config.limits.show_confidence != "hidden":
        # Sorting is stable, so among equally sure mistakes the newest comes first.
        examples.sort(key=_find_confidence, reverse=True)
    return examples[:max_count]


def _find_confidence(example: Example) -> float:
    """Return the highest probability that a model gave its wrong answer; 0 if none is known."""
    field = example.round.task.config.answer_field
    probabilities = [0.0]
    for output in example.target_outputs.all():
        probabilities.append((output.prob or {}).get(str(output.output.get(field)), 0.0))
    return max(probabilities)
