"""The training of a task's next target: its rows, the model, and the report on old and new.

Runs in a separate process (`evaluation.isolation.queue.subprocess_job`): it loads torch and
writes no row.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.utils.translation import gettext_noop

from core.text.words import spelled
from evaluation.models import Dataset, TrainingRun
from evaluation.releases.reading import split_rows
from evaluation.releases.splits import SPLITS
from evaluation.scoring.paired import compare
from evaluation.seeds import held_out, seed_rows
from evaluation.task_shape import Shape, Untrainable, released_row, shape_of, training_row
from evaluation.training.data import TrainingError
from evaluation.training.fine_tune import Reading, TrainingOptions, dev_part, fitting
from evaluation.training.services import file_of
from evaluation.training.shipped import encoder
from evaluation.training.starters import STARTERS
from evaluation.training.trainer import Trainer
from serving.errors import MisconfiguredError, ServingError
from serving.spec import OUTPUTS, SPAN, ModelSpec, find_weights, open_folder
from tasks.models import TargetModel, Task
from tasks.targets.connect import endpoint_of, spec_of
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.spending_services import Metered, Payer

Tell = Callable[[float, str], None]
Rows = list[dict[str, Any]]
TRAINING = 0.8  # the share of the work that training is; asking old and new model is the rest
ASKED_AT_ONCE = 16
DEADLINE_SECONDS = 60.0
FAILURES = (TrainingError, Untrainable, MisconfiguredError, FileNotFoundError)
"""What the person who asked for the training can mend; anything else is a fault of ours."""


@dataclass
class Source:
    """Rows of one origin by split; `left_out` counts those that cannot teach."""

    name: str
    weight: float | None  # None: not trained on, only tested on
    dataset: str | None = None
    train: Rows = field(default_factory=list)
    dev: Rows = field(default_factory=list)
    test: Rows = field(default_factory=list)
    left_out: int = 0

    def leave_out_unfit(self, base: Path, reading: Reading) -> None:
        """Drop the rows that have more tokens than the model can be asked about."""
        for split in SPLITS:
            rows = getattr(self, split)
            fit = fitting(base, rows, reading)
            self.left_out += len(rows) - len(fit)
            setattr(self, split, fit)


def train_next(run: TrainingRun, tell: Tell, trainer: Trainer) -> dict[str, Any]:
    """Train what a run asks for and return its report; the model's folder is named in it.

    The folder lies below MODELS_HOME/targets/<task>/ and is named after the digest of the weights.
    Raises one of FAILURES, and what the trainer does.
    """
    task, options = run.task, {**run.options, "rows": run.rows}
    shape = shape_of(task.config)
    tell(0.0, "collecting the rows")
    how = training_options(task, shape, options)
    sources = list(collect(task, shape, options, how))
    base, how = open_base(options, shape, how, below=_models_folder(task, options["base"]))
    for source in sources:
        source.leave_out_unfit(base, Reading(shape.kind, shape.labels, how.max_length))
    rows = [{**row, "weight": s.weight} for s in sources if s.weight for row in s.train]
    dev = [row for s in sources if s.weight for row in s.dev]
    kept = settings.MODELS_HOME / "targets" / task.code
    made = kept / f".run-{run.pk}-{uuid4().hex[:8]}"
    found = trainer.train(
        rows,
        dev=dev,
        kind=shape.kind,
        base=base,
        output_dir=made,
        options=how,
        progress=lambda done, steps, message: tell(done / steps * TRAINING, message),
    )
    folder = kept / found.weights_sha256[:16]
    if folder.exists():  # the same weights were made before
        shutil.rmtree(made)
    else:
        made.rename(folder)
    report = {
        "task": task.code,
        "kind": shape.kind,
        "labels": how.labels,
        "seed": how.seed,
        "base": base_name(task, options["base"]),
        "folder": str(folder),
        "sources": [counts(source) for source in sources],
        "training": asdict(found),
        **_compared(task, shape, sources, options, folder, how, tell, trainer),
    }
    (folder / "report.json").write_text(json.dumps(report, indent=2) + "\n")
    return report


def training_options(task: Task, shape: Shape, options: Mapping[str, Any]) -> TrainingOptions:
    """How a task's models are trained: as its starter was, else by the kind."""
    starter = STARTERS.get(task.code)
    if starter and starter.kind == shape.kind:
        how = starter.options
    elif shape.kind == SPAN:
        how = TrainingOptions(max_length=384, window=48)
    else:
        how = TrainingOptions()
    return replace(
        how,
        labels=shape.labels,
        seed=options["seed"],
        epochs=options["epochs"] or how.epochs,
        trained_on=", ".join(options["weights"]),
    )


def base_name(task: Task, base: str) -> str:
    """What people read of the base: a target's name, not where its files lie."""
    target = task.targets.filter(source=base).first() if base else None
    return target.name if target else base or gettext_noop("the starters' encoder")


def _models_folder(task: Task, base: str) -> str | None:
    """The folder in which a base must lie that is a target's; None: the shell named it."""
    target = task.targets.filter(source=base, url="").first() if base else None
    return spec_of(target).below if target else None


def open_base(
    options: Mapping[str, Any], shape: Shape, how: TrainingOptions, below: str | None = None
) -> tuple[Path, TrainingOptions]:
    """The folder to start from, and the options with the labels in the order of its logits.

    below: see `ModelSpec`. Raises MisconfiguredError, also for pickled weights.
    """
    spec = ModelSpec(
        name="base",
        source=options["base"] or str(encoder()),
        revision=options["revision"] or None,
        below=below if options["base"] else None,
    )
    folder, _ = find_weights(spec)
    for name, key in (("dynabench.json", "labels"), ("config.json", "id2label")):
        path = folder / name
        known = json.loads(path.read_bytes()).get(key) if path.exists() else None
        if isinstance(known, dict):  # of ten and more the file's order is 0, 1, 10, 2 …
            known = [known[number] for number in sorted(known, key=int)]
        labels = tuple(known or ())
        if shape.labels and (names := spelled(labels, shape.labels)):
            return folder, replace(how, labels=names)
    return folder, how


def collect(
    task: Task, shape: Shape, options: Mapping[str, Any], how: TrainingOptions
) -> Iterable[Source]:
    """The rows of seeds, uploaded files and rounds that are trained on, and all others' tests."""
    weights: Mapping[str, float] = options["weights"]
    if options.get("rows"):
        yield _own_rows("rows", 1.0, shape, options["rows"], how, options.get("file"))
    if options["has_seed"]:
        yield _own_rows("seed", weights.get("seed"), shape, _seed_rows(task, shape), how)
    for run in TrainingRun.objects.filter(pk__in=options.get("files", ())).order_by("pk"):
        name = f"rows{run.pk}"
        yield _own_rows(name, weights.get(name), shape, run.rows or (), how, file_of(run))
    datasets = Dataset.objects.select_related("round__task").filter(pk__in=options["datasets"])
    for dataset in datasets.order_by("round__number"):
        name = f"round{dataset.round.number}"
        source = Source(name, weights.get(name), str(dataset))
        for split in SPLITS if source.weight else ("test",):
            for line in split_rows(dataset, split):
                row = released_row(shape, line)
                source.left_out += row is None
                if row:
                    getattr(source, split).append(row)
        yield source


def _own_rows(
    name: str,
    weight: float | None,
    shape: Shape,
    rows: Iterable[Mapping[str, Any] | None],
    how: TrainingOptions,
    file: str | None = None,
) -> Source:
    """Rows that no round brought: the shipped ones, or a file that owners uploaded.

    A tenth is held out, the same in every training, so that later ones show what was forgotten; of
    the rest a part is kept to stop by. None, and what has no label of the task now, is left out.
    """
    source = Source(name, weight, file or None)
    labels, good = shape.labels, []
    for row in rows:
        is_good = row is not None and (labels is None or row["label"] in labels)
        source.left_out += not is_good
        if row is not None and is_good:
            good.append(row)
    rest, source.test = held_out(good)  # type: ignore[assignment]
    if weight:
        source.train, source.dev = dev_part(rest, how)  # type: ignore[assignment]
    return source


def _seed_rows(task: Task, shape: Shape) -> Iterator[dict[str, Any] | None]:
    """The shipped rows; None for one that cannot teach."""
    for line in seed_rows(task.code):
        row = training_row(shape, line, line.get("label", line.get("answer")))
        yield row and {**row, "group": line["group"]}


def counts(source: Source) -> dict[str, Any]:
    """A source in numbers: its rows by their number."""
    return {**vars(source), **{split: len(getattr(source, split)) for split in SPLITS}}


def _compared(
    task: Task,
    shape: Shape,
    sources: Sequence[Source],
    options: Mapping[str, Any],
    folder: Path,
    how: TrainingOptions,
    tell: Tell,
    trainer: Trainer,
) -> dict[str, Any]:
    """The old and the new model on every test: what the report says of them."""
    old = task.targets.filter(pk=options["old"]).first()
    tests = [source for source in sources if source.test]
    rows = [row for source in tests for row in source.test]
    tell(TRAINING, f"asking the new model about {len(rows)} rows")
    new = _own_answers(trainer, folder, rows, Reading(shape.kind, how.labels, how.max_length))
    no_old = gettext_noop("there is no older model to ask")
    tell(0.9, f"asking {old} about {len(rows)} rows" if old else no_old)
    before, why = _old_answers(trainer, old, rows, shape)
    found, first = [], 0
    for source in tests:
        part = slice(first, first := first + len(source.test))
        was = before[part] if before is not None else None
        rule = task.config.verdict
        found.append({"name": source.name, **compare(rule, shape, rows[part], was, new[part])})
    return {"old": old and old.name, "old_missing": why, "tests": found}


def _own_answers(
    trainer: Trainer, folder: Path, rows: Sequence[Mapping[str, Any]], reading: Reading
) -> list[str]:
    found = trainer.answers(folder, rows, reading)
    return [answer.output[OUTPUTS[reading.kind]] for answer in found]


def _old_answers(
    trainer: Trainer, old: TargetModel | None, rows: Sequence[Mapping[str, Any]], shape: Shape
) -> tuple[list[str] | None, str]:
    """What the old target says: from its own files where they are ours, else by asking it.

    None, and why, where it cannot be had. These are rows that a live target was asked about
    anyway, when they were written.
    """
    if old is None:
        return None, gettext_noop("no round had a target before")
    try:
        if old.source and not old.url:
            model = open_folder(spec_of(old))
            reading = Reading(shape.kind, model.labels, model.max_length)
            return _own_answers(trainer, model.path, rows, reading), ""
        endpoint, said = Metered(endpoint_of(old), Payer(old)), []
        for first in range(0, len(rows), ASKED_AT_ONCE):
            batch = [shape.inputs(row) for row in rows[first : first + ASKED_AT_ONCE]]
            found = endpoint.predict(batch, deadline_seconds=DEADLINE_SECONDS)
            said += [str(prediction.output[shape.answer]) for prediction in found]
    except (EndpointError, ServingError) as error:
        return None, f"{old} did not answer: {error}"
    return said, ""
