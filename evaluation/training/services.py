"""Write training runs: request one, and make its model the target of a round."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Exists, Max, OuterRef
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.services import log
from core.errors import Refused
from core.jobs.queue import enqueue
from evaluation.dataset_releases.reading import find_latest_datasets
from evaluation.models import TrainingRun
from evaluation.models.jobs import UNFINISHED_STATES
from evaluation.seeds import has_seeds
from evaluation.task_shape import UntrainableTask, build_trainable_shape
from tasks.models import Context, Round, RoundTarget, TargetModel, Task
from tasks.rounds.loop import register_target
from tasks.rounds.services import plan_round
from tasks.selectors import PLANNED_STATES
from tasks.targets.connect import build_serving_settings

SEED, ROWS = "seed", "rows"
"""Sources besides rounds: the shipped rows, and rows that owners labelled elsewhere.

The source of the rows uploaded for training run 12 is called `rows12`.
"""
MAX_WEIGHT = 100


class TrainingRefused(Refused):
    """Raised when a training run cannot be requested, or its model cannot become a target."""

    code = "training"


def has_seed(task: Task) -> bool:
    """Return whether the task has shipped seed rows."""
    return task.is_official and has_seeds(task.code)


def find_uploaded_trainings(task: Task) -> list[TrainingRun]:
    """Return the training runs on uploaded rows whose models became targets, without the rows."""
    runs = task.training_runs.filter(state=TrainingRun.State.DONE, rows__isnull=False)
    runs = runs.filter(target__isnull=False).select_related("target")
    # Both may be large, and only the runs and their targets are needed.
    return list(runs.defer("rows", "report").order_by("pk"))


def find_file_name(run: TrainingRun) -> str:
    """Return the name of the file whose rows a training run used; empty for older runs."""
    return str(run.options.get("file", ""))


def find_bases(task: Task) -> list[TargetModel]:
    """Return the targets with files on our model server, from which a training run may start."""
    return list(task.targets.filter(url="").exclude(source=""))


def find_current_target(task: Task) -> TargetModel | None:
    """Return the first target of the newest opened round, or None.

    The next target is compared with it.
    """
    round_targets = RoundTarget.objects.filter(round__task=task).exclude(
        round__state__in=PLANNED_STATES
    )
    newest_target = (
        round_targets.select_related("target__task").order_by("-round__number", "position").first()
    )
    return newest_target.target if newest_target else None


def find_default_base(task: Task) -> tuple[str, str]:
    """Return (source, revision) of the current target, if our model server has its files.

    Otherwise two empty strings, which mean the starters' encoder.
    """
    target = find_current_target(task)
    if target is None or target.url:
        return "", ""
    return target.source, target.revision


def find_free_name(task: Task, number: int) -> str:
    """Return an unused name for the target of a round."""
    name = f"{task.code}-round-{number}"
    taken_names = set(task.targets.filter(name__startswith=name).values_list("name", flat=True))
    # First the plain name, then numbered ones.
    numbered_name = name
    for number in itertools.count(2):
        if numbered_name not in taken_names:
            break
        numbered_name = f"{name}-{number}"
    return numbered_name


@transaction.atomic
def request_training(
    *,
    task: Task,
    actor: User | None,
    weights: Mapping[str, float],
    base: str = "",
    revision: str = "",
    seed: int = 0,
    epochs: int | None = None,
    wakes_worker: bool = True,
    rows: Sequence[Mapping[str, Any]] | None = None,
    file_name: str = "",
) -> TrainingRun:
    """Request a training run for the task's next target; return it. Locks the task.

    weights: how often a row is seen in an epoch, by source: `seed`, `round1`, `round2` …, and
    `rows12` for the rows uploaded for training run 12. Only these sources are trained on; all are
    tested on.
    rows: the rows of the source `rows`, as `build_training_row` returns them.
    file_name: the file of these rows.
    base: a folder, or a hub id with a full commit as `revision`; empty for the starters' encoder.
    epochs: the maximum number of epochs; None for that of the starter, or of the kind.
    wakes_worker: whether to wake a worker.
    The datasets and the old target are fixed at the request, so that a retry uses the same ones.
    Raises TrainingRefused.
    """
    # Locked, so that two requests start one training, and no release is undone meanwhile.
    Task.objects.select_for_update(of=("self",), no_key=True).get(pk=task.pk)
    if task.training_runs.filter(state__in=UNFINISHED_STATES).exists():
        raise TrainingRefused(
            _("This task is already training a model. Wait until the training finishes.")
        )
    try:
        build_trainable_shape(task.config)
    except UntrainableTask as error:
        raise TrainingRefused(str(error)) from None
    # Stored now, so that a retry uses the same rows and the same target for comparison.
    file_ids = [run.pk for run in find_uploaded_trainings(task)]
    dataset_ids = _find_training_datasets(task, weights, file_ids, has_rows=bool(rows))
    old_target = find_current_target(task)
    options = {
        "weights": dict(weights),
        "has_seed": has_seed(task),
        "datasets": list(dataset_ids.values()),
        "files": file_ids,
        "file": file_name,
        "base": base,
        "revision": revision,
        "seed": seed,
        "epochs": epochs,
        "old": old_target and old_target.pk,
    }
    run = TrainingRun.objects.create(task=task, options=options, rows=rows, requested_by=actor)
    log(actor, "training.requested", run, weights=dict(weights))
    if wakes_worker:
        enqueue(run.function, run.pk)
    return run


def _find_training_datasets(
    task: Task, weights: Mapping[str, float], file_ids: Sequence[int], *, has_rows: bool
) -> Mapping[str, int]:
    """Return the id of the newest dataset of every released round, by source.

    Raises TrainingRefused if a weight or a source is not allowed.
    """
    rounds = list(task.rounds.all())
    newest_datasets = find_latest_datasets(rounds)
    round_names = {f"round{round.number}" for round in rounds}
    dataset_ids = {
        f"round{dataset.round.number}": dataset.pk for dataset in newest_datasets.values()
    }
    file_names = {f"{ROWS}{pk}" for pk in file_ids}
    if has_rows:
        file_names.add(ROWS)
    for name, weight in weights.items():
        if name == SEED:
            if not has_seed(task):
                raise TrainingRefused(
                    _("%(task)s has no seed rows. Leave them out.") % {"task": task.code}
                )
        elif name in file_names:
            pass
        elif name not in round_names:
            values = {"task": task.code, "name": name.replace("round", "round ")}
            raise TrainingRefused(
                _("%(task)s has no training data called %(name)s. Choose other data.") % values
            )
        elif name not in dataset_ids:
            number = name.removeprefix("round")
            raise TrainingRefused(
                _("Round %(number)s hasn't been released. Release it, or leave it out.")
                % {"number": number}
            )
        # A larger weight would make an epoch very long.
        if not 0 < weight <= MAX_WEIGHT:
            raise TrainingRefused(
                _("The weight of %(name)s is %(weight)g. Enter a number above 0, at most %(most)d.")
                % {"name": name, "weight": weight, "most": MAX_WEIGHT}
            )
    if not weights:
        raise TrainingRefused(_("Choose at least one round, the seed rows or uploaded rows."))
    return dataset_ids


@transaction.atomic
def register_trained_target(
    *, run: TrainingRun, number: int, name: str, actor: User | None
) -> TargetModel:
    """Make the trained model a target of a round; return the target. Locks the task.

    A round that does not exist is planned as a draft whose parents are the rounds trained on. An
    existing round must not have been opened. Raises TrainingRefused.
    """
    if run.state != TrainingRun.State.DONE:
        raise TrainingRefused(
            _("This training run has no model, because it didn't finish. Choose a finished run.")
        )
    task = Task.objects.select_for_update(of=("self",), no_key=True).get(pk=run.task_id)
    round = _prepare_round(task, run, number, actor)
    fields = {"source": run.report["folder"], "serving": build_serving_settings(task.config)}
    # Read again under the lock, because another tab may have made the model a target.
    former_target = TrainingRun.objects.get(pk=run.pk).target
    if former_target is None:
        try:
            TargetModel(task=task, name=name, **fields).full_clean()
        except ValidationError as error:
            raise TrainingRefused(" ".join(error.messages)) from None
    else:
        name = former_target.name
    target = register_target(task=task, name=name, round=round, actor=actor, **fields)
    TrainingRun.objects.filter(pk=run.pk).update(target=target, round=round)
    return target


def _prepare_round(task: Task, run: TrainingRun, number: int, actor: User | None) -> Round:
    """Return the round of that number, planned if it is the next one. Raises TrainingRefused.

    Locks the round, so that it is not opened in the meantime.
    """
    check_round_accepts_target(task, number)
    round = task.rounds.select_for_update(of=("self",)).filter(number=number).first()
    if round is None:
        names = run.options["weights"]
        sources = [name.removeprefix("round") for name in names if name.startswith("round")]
        parents = task.rounds.filter(number__in=sources)
        has_contexts = Exists(Context.objects.filter(round=OuterRef("pk"), is_retired=False))
        opened_rounds = task.rounds.filter(has_contexts, opened_at__isnull=False)
        last_opened_round = opened_rounds.order_by("number").last()
        round = plan_round(
            task=task, actor=actor, fields={}, parents=parents, contexts_of=last_opened_round
        )
    check_not_opened(round)
    return round


def check_round_accepts_target(task: Task, number: int) -> None:
    """Raise TrainingRefused if no target can join the round.

    None can if the round was opened, or if it does not exist and would not be the next one.
    """
    round = task.rounds.filter(number=number).first()
    if round is not None:
        check_not_opened(round)
        return
    last_number = task.rounds.aggregate(last=Max("number"))["last"] or 0
    if number != last_number + 1:
        raise TrainingRefused(
            _("Round %(number)d doesn't exist. The next new round is %(next)d.")
            % {"number": number, "next": last_number + 1}
        )


def check_not_opened(round: Round) -> None:
    """Raise TrainingRefused if the round was opened."""
    if round.state not in PLANNED_STATES:
        raise TrainingRefused(
            _("Round %(number)d has already been opened. Add models before a round opens.")
            % {"number": round.number}
        )
