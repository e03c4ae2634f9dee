"""Find the possible training data of models, and how much of each evaluation set it contains."""

import logging
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from django.utils.translation import gettext_noop

from evaluation.dataset_releases.reading import read_split_rows
from evaluation.models import (
    Dataset,
    EvaluationRun,
    EvaluationSetVersion,
    Submission,
    TrainedRows,
    TrainingRun,
)
from evaluation.seeds import has_seeds, read_seed_rows, split_held_out
from evaluation.task_shape import build_trainable_shape
from evaluation.test_sets.overlap import (
    SEED_SOURCE,
    count_overlaps,
    count_packed_rows,
    index_sources,
    needs_warning,
    parse_source_names,
)
from evaluation.test_sets.selectors import read_input_rows, select_newest_versions
from tasks.models import TargetModel, Task

logger = logging.getLogger(__name__)
STARTERS_FOLDER = "/models/starters/"
SEEN_WARNING = gettext_noop("The model was trained on examples of this set.")
TRAINING_SPLITS = ("train", "dev")
"""The splits of a release that training runs read."""


def compare_sets() -> int:
    """Compare the newest version of each set with new training rows; return how many were compared.

    Called by the sweep. A task whose sets cannot be compared is logged and skipped. Takes no lock,
    because a second comparison gives the same result.
    """
    compared_count = 0
    for task in Task.objects.filter(evaluation_sets__versions__isnull=False).distinct():
        try:
            compared_count += _compare_task(task)
        except Exception:
            logger.exception("The sets of %s cannot be compared with training rows", task)
    return compared_count


def _compare_task(task: Task) -> int:
    """Compare the task's sets whose sources have changed; return how many were compared."""
    sources = _find_sources(task)
    stale_versions = []
    for version in select_newest_versions(task):
        if version.overlap is None or version.overlap["sources"] != sources:
            stale_versions.append(version)
    if not stale_versions:
        return 0
    fields = task.config.model_fields
    rows_by_source = {name: _read_source(task, name, pk) for name, pk in sources.items()}
    names_by_digest = index_sources(rows_by_source, fields)
    for version in stale_versions:
        rows = (row["inputs"] for row in read_input_rows(version))
        overlap = {"sources": sources, "rows": count_overlaps(rows, names_by_digest, fields)}
        # An update, not a save, because other columns may have changed meanwhile.
        EvaluationSetVersion.objects.filter(pk=version.pk).update(overlap=overlap)
    return len(stale_versions)


def _find_sources(task: Task) -> dict[str, int]:
    """Return the training sources by name: each round's newest release id, and 0 for seeds."""
    finished_datasets = Dataset.objects.filter(round__task=task, state=Dataset.State.DONE)
    sources = {}
    for number, pk in finished_datasets.order_by("version").values_list("round__number", "pk"):
        sources[f"round{number}"] = pk  # a later version replaces an earlier one
    if task.is_official and has_seeds(task.code):
        sources[SEED_SOURCE] = 0
    return sources


def _read_source(task: Task, name: str, pk: int) -> Iterator[Mapping[str, Any]]:
    """Yield the model inputs of each row of a source. pk: the release's id, 0 for seeds."""
    if name == SEED_SOURCE:
        trained_rows, _ = split_held_out(read_seed_rows(task.code))
        yield from map(build_trainable_shape(task.config).select_inputs, trained_rows)
        return
    dataset = Dataset.objects.select_related("round__task").get(pk=pk)
    for split in TRAINING_SPLITS:
        for row in read_split_rows(dataset, split):
            yield {**row["context"], **row["input_json"]}


def count_seen_examples(run: EvaluationRun) -> int | None:
    """Return how many examples of a run's set are in the training rows that its model submitted.

    None if unknown, which includes models trained elsewhere and perturbed runs.
    """
    if run.suite != EvaluationRun.Suite.PLAIN:
        return None
    trained_rows = TrainedRows.objects.filter(submission=run.submission_id).first()
    if trained_rows is None:
        return None
    rows = (row["inputs"] for row in read_input_rows(run.version))
    return count_packed_rows(
        rows, bytes(trained_rows.digests), run.submission.task.config.model_fields
    )


def make_seen_warnings(run: EvaluationRun, seen_count: int | None, *, is_shown: bool) -> list[str]:
    """Return the public warning that the model was trained on examples of the set, if it was.

    The warning discloses one more bit. So if the set's inputs are secret, it appears only with a
    result that is shown.
    """
    may_warn = is_shown or run.version.evaluation_set.may_leave
    if may_warn and needs_warning(seen_count, run.version.size):
        return [SEEN_WARNING]
    return []


def compute_seen_share(
    run: EvaluationRun | None, version: EvaluationSetVersion, source_names: Collection[str] | None
) -> float | None:
    """Return the share of a set (0-1) on which a model was trained; None if unknown.

    The share is counted in the submitted training rows if there are any, otherwise derived from
    `source_names`: the names of the model's sources, as returned by `find_training_sources`.
    """
    if run and run.seen is not None:
        return run.seen / version.size if version.size else 0.0
    return None if source_names is None else version.compute_overlap(source_names)


def find_training_sources(submission: Submission) -> set[str] | None:
    """Return the names of a model's training sources: known for targets, else read from its card.

    None if the sources are unknown.
    """
    if submission.target:
        return _find_target_sources(submission.target)
    return parse_source_names(submission.trained_on) or None


def _find_target_sources(target: TargetModel) -> set[str] | None:
    """Return the training sources of a target and of its base model; None if unknown."""
    run = TrainingRun.objects.filter(target=target).order_by("pk").first()
    if run is None:
        # Starters are trained only on seeds; their folder says that it is a starter.
        return {SEED_SOURCE} if STARTERS_FOLDER in target.source else None
    sources = set(run.options["weights"])
    base_source = run.options.get("base")
    if base_source:
        bases = TargetModel.objects.filter(task=target.task_id, source=base_source)
        base = bases.exclude(pk=target.pk).first()
        if base:
            sources |= _find_target_sources(base) or set()
    return sources
