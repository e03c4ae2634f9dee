"""What models may have been trained on, and how much of each evaluation set is among it."""

import logging
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from django.utils.translation import gettext_noop

from evaluation.models import (
    Dataset,
    EvaluationRun,
    EvaluationSetVersion,
    Submission,
    TrainedRows,
    TrainingRun,
)
from evaluation.releases.reading import split_rows
from evaluation.seeds import has_seeds, held_out, seed_rows
from evaluation.sets.overlap import SEED, count_packed, counted, is_much, known_rows, named
from evaluation.sets.selectors import input_rows, newest_versions
from evaluation.task_shape import shape_of
from tasks.models import TargetModel, Task

logger = logging.getLogger(__name__)
STARTERS_FOLDER = "/models/starters/"
SEEN = gettext_noop("The model was trained on examples of this set.")
LEARNED = ("train", "dev")
"""The splits of a release that a training reads."""


def compare_sets() -> int:
    """Compare the newest version of each set with all training rows that are new; how many.

    The sweep calls it. No lock: who compares twice finds the same.
    """
    made = 0
    for task in Task.objects.filter(evaluation_sets__versions__isnull=False).distinct():
        try:
            made += _compare(task)
        except Exception:
            logger.exception("The sets of %s cannot be compared with training rows", task)
    return made


def _compare(task: Task) -> int:
    sources = _sources(task)
    stale = [
        version
        for version in newest_versions(task)
        if version.overlap is None or version.overlap["sources"] != sources
    ]
    if not stale:
        return 0
    fields = task.config.model_fields
    known = known_rows({name: _rows(task, name, pk) for name, pk in sources.items()}, fields)
    for version in stale:
        rows = (row["inputs"] for row in input_rows(version))
        overlap = {"sources": sources, "rows": counted(rows, known, fields)}
        EvaluationSetVersion.objects.filter(pk=version.pk).update(overlap=overlap)
    return len(stale)


def _sources(task: Task) -> dict[str, int]:
    """By name the newest release of each round, and 0 for the seeds of an official task."""
    done = Dataset.objects.filter(round__task=task, state=Dataset.State.DONE).order_by("version")
    found = {f"round{number}": pk for number, pk in done.values_list("round__number", "pk")}
    return found | ({SEED: 0} if task.is_official and has_seeds(task.code) else {})


def _rows(task: Task, name: str, pk: int) -> Iterator[Mapping[str, Any]]:
    """What models read of the rows of a source."""
    if name == SEED:
        yield from map(shape_of(task.config).inputs, held_out(seed_rows(task.code))[0])
        return
    dataset = Dataset.objects.select_related("round__task").get(pk=pk)
    for split in LEARNED:
        for row in split_rows(dataset, split):
            yield {**row["context"], **row["input_json"]}


def count_seen(run: EvaluationRun) -> int | None:
    """How many examples of a run's set are among the rows that its model was trained on here.

    None: it is not known, as of all but submitted training rows, and of perturbed runs.
    """
    if run.suite != EvaluationRun.Suite.PLAIN:
        return None
    learned = TrainedRows.objects.filter(submission=run.submission_id).first()
    if learned is None:
        return None
    rows = (row["inputs"] for row in input_rows(run.version))
    return count_packed(rows, bytes(learned.digests), run.submission.task.config.model_fields)


def seen_warning(run: EvaluationRun, seen: int | None, *, is_shown: bool) -> list[str]:
    """What everybody is told of a result whose model was trained on examples of the set.

    Of a set whose inputs stay here only with a result that is shown: it is one more bit of it.
    """
    may_tell = is_shown or run.version.evaluation_set.may_leave
    return [SEEN] if may_tell and is_much(seen, run.version.size) else []


def part_seen(
    run: EvaluationRun | None, version: EvaluationSetVersion, learned: Collection[str] | None
) -> float | None:
    """The part of a set that a model was trained on, counted in its rows or by what it says."""
    if run and run.seen is not None:
        return run.seen / version.size if version.size else 0.0
    return None if learned is None else version.overlap_with(learned)


def trained_on(submission: Submission) -> set[str] | None:
    """The names of what a model was trained on, as far as we trained it or its card says it."""
    if submission.target:
        return _of_target(submission.target)
    return named(submission.trained_on) or None


def _of_target(target: TargetModel) -> set[str] | None:
    """That of a target, with what its base was trained on."""
    run = TrainingRun.objects.filter(target=target).order_by("pk").first()
    if run is None:
        return {SEED} if STARTERS_FOLDER in target.source else None
    source = run.options.get("base") or ""
    base = TargetModel.objects.filter(task=target.task_id, source=source).exclude(pk=target.pk)
    known = _of_target(base[0]) if source and base else set()
    return {*run.options["weights"], *(known or ())}
