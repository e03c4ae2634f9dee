"""Reads of the tries against a model, and the slices on which it errs more often."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.db.models import Q
from django.utils import translation
from django.utils.translation import gettext as _

from annotation.models import Example, TargetOutput
from annotation.rules.near_duplicates import get_written_text
from core.data.adaptive_cache import read_or_count
from core.numbers import format_p
from core.text.words import split_words
from dynabench.failures.rules.records import Slice, SliceSearch, Try
from tasks.config.schema import TaskConfig
from tasks.models import TargetModel, Task
from validation.consensus.claims import find_label_field
from validation.decisions.counted import JUDGED_EXAMPLE_STATES, build_try_condition
from validation.models import Consensus

MAX_TRIES = 5000
"""The maximum number of tries to search, newest first."""
MAX_EXAMPLES_SHOWN = 3


class ShownError(NamedTuple):
    """A confirmed error of a slice: its example's id, and the text that its author wrote."""

    uuid: Any
    text: str


class ShownSlice(NamedTuple):
    """A slice with its most typical errors, and the challenge that asks writers for more.

    challenge: a sentence in the task's language; "" for a declared value. p_text: the p-value.
    """

    slice: Slice
    errors: list[ShownError]
    challenge: str
    p_text: str


class WeakSpots(NamedTuple):
    """What a search found in the tries against a model."""

    search: SliceSearch
    slices: list[ShownSlice]


def list_searched_models(task: Task) -> list[TargetModel]:
    """Return the models that people's tries have been against, by name. One query."""
    outputs = TargetOutput.objects.filter(example__round__task=task)
    return list(TargetModel.objects.filter(pk__in=outputs.order_by().values("target")))


def find_weak_spots(task: Task, model: TargetModel) -> WeakSpots:
    """Return the slices on which the model errs more often, with examples. Two queries.

    The search is cached, because it takes seconds for a large task.
    """
    search = read_or_count(
        f"failures:{task.pk}:{model.pk}:{task.config_number}", lambda: _search(task, model)
    )
    shown_ids: list[Any] = []
    for one in search.slices:
        shown_ids += one.examples[:MAX_EXAMPLES_SHOWN]
    # A text may have been erased or withdrawn since the search.
    examples = Example.objects.filter(pk__in=shown_ids, retracted_at__isnull=True)
    texts = {}
    for pk, uuid, inputs in examples.exclude(digest="").values_list("pk", "uuid", "inputs"):
        texts[pk] = ShownError(uuid, get_written_text(task.config, inputs))
    return WeakSpots(search, [_describe_slice(task, one, texts) for one in search.slices])


def _describe_slice(task: Task, one: Slice, texts: Mapping[Any, ShownError]) -> ShownSlice:
    errors = [texts[pk] for pk in one.examples[:MAX_EXAMPLES_SHOWN] if pk in texts]
    challenge = ""
    if one.words:
        # Writers read it beside the task's texts, whatever language its owner reads.
        with translation.override(task.config.language):
            challenge = _("Try one about: %(words)s.") % {"words": ", ".join(one.words)}
    return ShownSlice(one, errors, challenge, format_p(one.p_value))


def _search(task: Task, model: TargetModel) -> SliceSearch:
    """Search slices among the newest tries against the model."""
    from dynabench.failures.rules.slices import find_slices  # numpy: not in each web process

    return find_slices(list_tries(task, model))


def list_tries(task: Task, model: TargetModel) -> list[Try]:
    """Return the newest MAX_TRIES of people against the model, oldest first. One query.

    An error counts if people confirmed the example. Left out: errors that wait for people, and
    examples that people refuted or could not decide.
    """
    refuted_consensus = Consensus.objects.filter(
        state__in=JUDGED_EXAMPLE_STATES, is_verified=False, round__task=task
    )
    outputs = (
        TargetOutput.objects.filter(
            build_try_condition("example__"),
            target=model,
            example__round__task=task,
            fooled__isnull=False,
        )
        .exclude(example__digest="")
        .exclude(example__consensus__in=refuted_consensus)
        .filter(Q(fooled=False) | Q(example__consensus__is_verified=True))
        .order_by("-example")
    )
    rows = outputs.values_list(
        "example",
        "fooled",
        "example__annotator",
        "example__inputs",
        "example__context__fields",
        "example__metadata",
        "example__challenge",
    )[:MAX_TRIES]
    config, tries = task.config, []
    for pk, is_error, author, inputs, context, metadata, challenge in rows:
        tries.append(
            Try(
                key=pk,
                # Nobody knows who wrote imported history, so each of its texts stands alone.
                author=f"unknown {pk}" if author is None else author,
                words=frozenset(split_words(get_written_text(config, inputs).lower())),
                is_error=bool(is_error),
                values=read_values(config, context | inputs | metadata, challenge),
            )
        )
    # The newest were selected, but a chain of changes is told by its order.
    tries.reverse()
    return tries


def read_values(
    config: TaskConfig, fields: Mapping[str, Any], challenge: str | None
) -> dict[str, str]:
    """Return the declared values of a try by name: its label, its slices and its challenge.

    A field with several values has none here, since a text would belong to several slices.
    """
    names = set(config.slices)
    if label_field := find_label_field(config):
        names.add(label_field)
    values = {}
    for name in sorted(names):
        value = fields.get(name)
        # Spans, pictures and texts of several parts are no values that texts share.
        if isinstance(value, str | int | float | bool):
            values[name] = str(value)
    if challenge:
        values["challenge"] = challenge
    return values
