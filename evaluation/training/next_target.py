"""Train a task's next target: collect the rows, train, and compare the old and the new model.

Runs in a separate process (`evaluation.isolation.queue.subprocess_job`), which loads torch and
writes no database rows.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.utils.translation import gettext_noop

from core.text.words import order_labels_by_names
from evaluation.dataset_releases.reading import read_split_rows
from evaluation.dataset_releases.splits import SPLITS
from evaluation.models import Dataset, TrainingRun
from evaluation.scoring.paired import compare_models
from evaluation.seeds import read_seed_rows, split_held_out
from evaluation.task_shape import (
    TaskShape,
    UntrainableTask,
    build_released_row,
    build_trainable_shape,
    build_training_row,
)
from evaluation.training.data import TrainingError
from evaluation.training.fine_tune import (
    Reading,
    TrainingOptions,
    filter_fitting_rows,
    split_dev_rows,
)
from evaluation.training.services import find_file_name
from evaluation.training.shipped import find_encoder
from evaluation.training.standing_catches import count_standing_catches, mark_catch
from evaluation.training.starters import STARTERS
from evaluation.training.trainer_protocol import Trainer
from serving.errors import MisconfiguredError, ServingError
from serving.spec import OUTPUT_BY_KIND, SPAN, ModelSpec, find_weights, open_folder
from tasks.models import TargetModel, Task
from tasks.targets.connect import build_spec, get_endpoint
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.spending_services import MeteredEndpoint, Payer

ProgressCallback = Callable[[float, str], None]
Rows = list[dict[str, Any]]
TRAINING_SHARE = 0.8  # training's share of the work; the rest is running the old and the new model
BATCH_ROWS = 16
"""The number of rows in one call to a live target."""
DEADLINE_SECONDS = 60.0
FAILURE_ERRORS = (TrainingError, UntrainableTask, MisconfiguredError, FileNotFoundError)
"""Errors that the person who requested the run can fix. Any other error is our fault."""


@dataclass
class RowSource:
    """Rows from one origin, by split. left_out: the number of rows that cannot be used."""

    name: str
    weight: float | None  # None: only tested on, not trained on
    dataset: str | None = None
    train: Rows = field(default_factory=list)
    dev: Rows = field(default_factory=list)
    test: Rows = field(default_factory=list)
    left_out: int = 0

    def drop_oversized_rows(self, base: Path, reading: Reading) -> None:
        """Drop the rows that have more tokens than the model can read."""
        for split in SPLITS:
            rows = getattr(self, split)
            fitting_rows = filter_fitting_rows(base, rows, reading)
            self.left_out += len(rows) - len(fitting_rows)
            setattr(self, split, fitting_rows)


def train_next_target(
    run: TrainingRun, report_progress: ProgressCallback, trainer: Trainer
) -> dict[str, Any]:
    """Do a requested training run and return its report, which names the model's folder.

    1. Collect the rows of all sources, without rows that are too long for the base model.
    2. Train, in a folder of the run's own.
    3. Move the model to MODELS_HOME/targets/<task>/, under the digest of its weights.
    4. Compute the answers of the new and the old model to every test.

    Raises one of FAILURE_ERRORS, and the trainer's exceptions.
    """
    task, options = run.task, {**run.options, "rows": run.rows}
    shape = build_trainable_shape(task.config)
    report_progress(0.0, "collecting the rows")
    training_options = choose_training_options(task, shape, options)
    sources = list(collect_sources(task, shape, options, training_options))
    base, training_options = open_base(
        options, shape, training_options, below=_find_models_folder(task, options["base"])
    )
    for source in sources:
        source.drop_oversized_rows(
            base, Reading(shape.kind, shape.labels, training_options.max_length)
        )
    rows: Rows = []
    dev: Rows = []
    for source in sources:
        if source.weight:
            rows += [{**row, "weight": source.weight} for row in source.train]
            dev += source.dev
    models_folder = settings.MODELS_HOME / "targets" / task.code
    own_folder = models_folder / f".run-{run.pk}-{uuid4().hex[:8]}"
    training = trainer.train(
        rows,
        dev=dev,
        kind=shape.kind,
        base=base,
        output_dir=own_folder,
        options=training_options,
        progress=lambda done, steps, message: report_progress(
            done / steps * TRAINING_SHARE, message
        ),
    )
    folder = models_folder / training.weights_sha256[:16]
    if folder.exists():  # the same weights were trained before
        shutil.rmtree(own_folder)
    else:
        own_folder.rename(folder)
    report = {
        "task": task.code,
        "kind": shape.kind,
        "labels": training_options.labels,
        "seed": training_options.seed,
        "base": find_base_name(task, options["base"]),
        "folder": str(folder),
        "sources": list(map(count_source_rows, sources)),
        "training": asdict(training),
        **_compare_models(
            task, shape, sources, options, folder, training_options, report_progress, trainer
        ),
    }
    # The ids of test rows stay in the database; a folder of a model may be copied.
    published = {name: value for name, value in report.items() if name != "standing"}
    (folder / "report.json").write_text(json.dumps(published, indent=2) + "\n")
    return report


def choose_training_options(
    task: Task, shape: TaskShape, options: Mapping[str, Any]
) -> TrainingOptions:
    """Return the options of a training run: those of the task's starter, or the kind's defaults."""
    starter = STARTERS.get(task.code)
    if starter and starter.kind == shape.kind:
        training_options = starter.options
    elif shape.kind == SPAN:
        training_options = TrainingOptions(max_length=384, window=48)
    else:
        training_options = TrainingOptions()
    return replace(
        training_options,
        labels=shape.labels,
        seed=options["seed"],
        epochs=options["epochs"] or training_options.epochs,
        trained_on=", ".join(options["weights"]),
    )


def find_base_name(task: Task, base: str) -> str:
    """Return the displayed name of the base model: a target's name, else its folder or hub id.

    No base is the encoder of the starters.
    """
    if not base:
        return gettext_noop("the starter models' encoder")
    target = task.targets.filter(source=base).first()
    return target.name if target else base


def _find_models_folder(task: Task, base: str) -> str | None:
    """Return the folder that must contain the files of a base model that is a target.

    Returns None for any other base: it was named on the command line, where any folder is allowed.
    """
    if not base:
        return None
    target = task.targets.filter(source=base, url="").first()
    return build_spec(target).below if target else None


def open_base(
    options: Mapping[str, Any],
    shape: TaskShape,
    training_options: TrainingOptions,
    below: str | None = None,
) -> tuple[Path, TrainingOptions]:
    """Return the base model's folder, and the options with labels in the order of its logits.

    below: see `ModelSpec`. Raises MisconfiguredError, also for pickled weights.
    """
    spec = ModelSpec(
        name="base",
        source=options["base"] or str(find_encoder()),
        revision=options["revision"] or None,
        below=below if options["base"] else None,
    )
    folder, _ = find_weights(spec)
    for name, key in (("dynabench.json", "labels"), ("config.json", "id2label")):
        path = folder / name
        if not path.exists():
            continue
        labels = json.loads(path.read_bytes()).get(key)
        if isinstance(labels, dict):  # with ten or more the file's order is 0, 1, 10, 2 …
            labels = [labels[number] for number in sorted(labels, key=int)]
        names = order_labels_by_names(tuple(labels or ()), shape.labels) if shape.labels else None
        if names:
            return folder, replace(training_options, labels=names)
    return folder, training_options


def collect_sources(
    task: Task, shape: TaskShape, options: Mapping[str, Any], training_options: TrainingOptions
) -> Iterable[RowSource]:
    """Yield the rows of all sources: seeds, uploaded files and rounds.

    Sources with a weight are trained on. Only the test rows are read from the others.
    """
    weights: Mapping[str, float] = options["weights"]
    if options.get("rows"):
        yield _split_own_rows(
            "rows", 1.0, shape, options["rows"], training_options, options.get("file")
        )
    if options["has_seed"]:
        yield _split_own_rows(
            "seed", weights.get("seed"), shape, _iterate_seed_rows(task, shape), training_options
        )
    for run in TrainingRun.objects.filter(pk__in=options.get("files", ())).order_by("pk"):
        name = f"rows{run.pk}"
        yield _split_own_rows(
            name, weights.get(name), shape, run.rows or (), training_options, find_file_name(run)
        )
    datasets = Dataset.objects.select_related("round__task").filter(pk__in=options["datasets"])
    for dataset in datasets.order_by("round__number"):
        name = f"round{dataset.round.number}"
        source = RowSource(name, weights.get(name), str(dataset))
        for split in SPLITS if source.weight else ("test",):
            for line in read_split_rows(dataset, split):
                row = build_released_row(shape, line)
                if row is None:
                    source.left_out += 1
                    continue
                if split == "test":
                    row = mark_catch(row, line)
                getattr(source, split).append(row)
        yield source


def _split_own_rows(
    name: str,
    weight: float | None,
    shape: TaskShape,
    rows: Iterable[Mapping[str, Any] | None],
    training_options: TrainingOptions,
    file: str | None = None,
) -> RowSource:
    """Split rows from outside the rounds: the shipped ones, or a file that owners uploaded.

    A tenth is held out for testing. It is the same in every training run, so that later runs show
    what was forgotten. A part of the rest decides when to stop. A row is left out if it is None, or
    if its label is no longer a label of the task.
    """
    source = RowSource(name, weight, file or None)
    labels, good_rows = shape.labels, []
    for row in rows:
        if row is None or (labels is not None and row["label"] not in labels):
            source.left_out += 1
        else:
            good_rows.append(row)
    training_rows, source.test = split_held_out(good_rows)  # type: ignore[assignment]
    if weight:
        source.train, source.dev = split_dev_rows(training_rows, training_options)  # type: ignore[assignment]
    return source


def _iterate_seed_rows(task: Task, shape: TaskShape) -> Iterator[dict[str, Any] | None]:
    """Yield the shipped rows; None for a row that cannot be trained on."""
    for line in read_seed_rows(task.code):
        row = build_training_row(shape, line, line.get("label", line.get("answer")))
        yield row and {**row, "group": line["group"]}


def count_source_rows(source: RowSource) -> dict[str, Any]:
    """Return a source's fields, with the number of rows in each split instead of the rows."""
    numbers = dict(vars(source))
    for split in SPLITS:
        numbers[split] = len(numbers[split])
    return numbers


def _compare_models(
    task: Task,
    shape: TaskShape,
    sources: Sequence[RowSource],
    options: Mapping[str, Any],
    folder: Path,
    training_options: TrainingOptions,
    report_progress: ProgressCallback,
    trainer: Trainer,
) -> dict[str, Any]:
    """Return the report's comparison of the old and the new model on every test."""
    old_target = task.targets.filter(pk=options["old"]).first()
    tests = [source for source in sources if source.test]
    rows = list(chain.from_iterable(source.test for source in tests))
    report_progress(TRAINING_SHARE, f"asking the new model about {len(rows)} rows")
    # All tests at once, because loading a model takes longer than running it.
    new_answers = _ask_own_model(
        trainer,
        folder,
        rows,
        Reading(shape.kind, training_options.labels, training_options.max_length),
    )
    no_old_message = gettext_noop("this task has no older model to compare with")
    report_progress(
        0.9, f"asking {old_target} about {len(rows)} rows" if old_target else no_old_message
    )
    old_answers, missing_reason = _ask_old_model(trainer, old_target, rows, shape)
    comparisons, standing_counts, start = [], {}, 0
    for source in tests:
        test_range = slice(start, start + len(source.test))
        start = test_range.stop
        old_test_answers = None if old_answers is None else old_answers[test_range]
        rule = task.config.verdict
        comparison = compare_models(
            rule, shape, rows[test_range], old_test_answers, new_answers[test_range]
        )
        comparisons.append({"name": source.name, **comparison})
        if source.dataset:
            standing_counts[source.name] = count_standing_catches(
                rule, shape, rows[test_range], new_answers[test_range]
            )
    return {
        "old": old_target and old_target.name,
        "old_missing": missing_reason,
        "tests": comparisons,
        "standing": standing_counts,
    }


def _ask_own_model(
    trainer: Trainer, folder: Path, rows: Sequence[Mapping[str, Any]], reading: Reading
) -> list[str]:
    answers = trainer.compute_answers(folder, rows, reading)
    return [answer.output[OUTPUT_BY_KIND[reading.kind]] for answer in answers]


def _ask_old_model(
    trainer: Trainer,
    old_target: TargetModel | None,
    rows: Sequence[Mapping[str, Any]],
    shape: TaskShape,
) -> tuple[list[str] | None, str]:
    """Return the old target's answers, from its own files if they are ours, or else by calling it.

    If it is not available, return None and the reason. Calls reveal nothing new: a live target
    already read these rows when they were written.
    """
    if old_target is None:
        return None, gettext_noop("no earlier round had a model")
    try:
        if old_target.source and not old_target.url:
            model = open_folder(build_spec(old_target))
            reading = Reading(shape.kind, model.labels, model.max_length)
            return _ask_own_model(trainer, model.path, rows, reading), ""
        endpoint, answers = MeteredEndpoint(get_endpoint(old_target), Payer(old_target)), []
        for start in range(0, len(rows), BATCH_ROWS):
            batch = [shape.select_inputs(row) for row in rows[start : start + BATCH_ROWS]]
            predictions = endpoint.predict(batch, deadline_seconds=DEADLINE_SECONDS)
            answers += [str(prediction.output[shape.answer]) for prediction in predictions]
    # Report the new model even without a comparison.
    except (EndpointError, ServingError) as error:
        return None, f"{old_target} did not answer: {error}"
    return answers, ""
