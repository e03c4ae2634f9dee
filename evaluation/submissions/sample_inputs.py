"""Reads about datasets, trainings, and the examples that a check shows."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from evaluation.inference.precheck import FIVE
from evaluation.models import Dataset, TrainingRun
from evaluation.sets.versions import input_rows
from evaluation.submissions.services import open_versions
from tasks.models import Context, Round, RoundTarget, TargetModel, Task

NOT_OPENED = (Round.State.DRAFT, Round.State.READY)


def latest_datasets(rounds: Iterable[Round]) -> Mapping[int, Dataset]:
    """The newest finished dataset of each round, by round id; one query."""
    rows = Dataset.objects.select_related("round__task")
    done = rows.filter(round__in=rounds, state=Dataset.State.DONE)
    return {dataset.round_id: dataset for dataset in done.order_by("version")}


def current_target(task: Task) -> TargetModel | None:
    """The first target of the newest round that was opened; what a next target is compared with."""
    asked = RoundTarget.objects.filter(round__task=task).exclude(round__state__in=NOT_OPENED)
    newest = asked.select_related("target__task").order_by("-round__number", "position").first()
    return newest.target if newest else None


def in_the_loop_rounds(target: TargetModel) -> list[int]:
    """Numbers of the rounds that the target helped to create: people wrote against it."""
    asked = RoundTarget.objects.filter(target=target).exclude(round__state__in=NOT_OPENED)
    return sorted(asked.values_list("round__number", flat=True))


def trained_on_rounds(target: TargetModel) -> list[int]:
    """Numbers of the rounds whose data the target was trained on, as far as we trained it."""
    runs = TrainingRun.objects.filter(target=target).values_list("options__weights", flat=True)
    names = {name for weights in runs for name in weights} - {"seed"}
    return sorted(int(name.removeprefix("round")) for name in names)


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
