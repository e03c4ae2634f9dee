"""The five examples that the check of a submission asks."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from evaluation.inference.precheck import FIVE
from evaluation.sets.selectors import input_rows, open_versions
from tasks.models import Context, Task


def shown_inputs(task: Task) -> list[Mapping[str, Any]]:
    """Five examples that everybody may see, as far as there are some; the last one repeats."""
    found = list(islice(chain(_of_sets(task), _of_config(task), _of_contexts(task)), FIVE))
    return [found[min(place, len(found) - 1)] for place in range(FIVE)]


def _of_sets(task: Task) -> Iterator[Mapping[str, Any]]:
    for version in open_versions(task):
        yield from (row["inputs"] for row in input_rows(version))


def _of_config(task: Task) -> Iterator[Mapping[str, Any]]:
    for case in (*task.config.examples.good, *task.config.examples.bad):
        values = {**case.context, **case.input}
        if all(name in values for name in task.config.model_fields):
            yield values


def _of_contexts(task: Task) -> Iterator[Mapping[str, Any]]:
    """Contexts people were shown; what they wrote to them is not public, so it is a placeholder."""
    contexts = Context.objects.filter(round__task=task).order_by("pk")
    fields: Iterable[Mapping[str, Any]] = contexts.values_list("fields", flat=True)[:FIVE]
    for known in (*fields, {}):
        yield {name: known.get(name, "An example.") for name in task.config.model_fields}
