"""Writes about trainings: asking for one, and making its model the target of a round."""

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
from evaluation.models import TrainingRun
from evaluation.releases.reading import latest_datasets
from evaluation.seeds import has_seeds
from evaluation.task_shape import Untrainable, shape_of
from tasks.models import Context, Round, RoundTarget, TargetModel, Task
from tasks.rounds.loop import register_target
from tasks.rounds.services import plan_round
from tasks.selectors import PLANNED
from tasks.targets.connect import serving_of

SEED, ROWS = "seed", "rows"
"""Sources besides rounds: the shipped rows, and those that owners labelled elsewhere.

Those of an earlier training are `rows` and its number.
"""
MOST_WEIGHT = 100


class TrainingRefused(Refused):
    """A training cannot be requested, or its model cannot become a target."""

    code = "training"


def has_seed(task: Task) -> bool:
    """Whether seed rows of the task are shipped."""
    return task.is_official and has_seeds(task.code)


def uploaded(task: Task) -> list[TrainingRun]:
    """The trainings on uploaded rows whose models became targets; without the rows."""
    runs = task.training_runs.filter(state=TrainingRun.State.DONE, rows__isnull=False)
    runs = runs.filter(target__isnull=False).select_related("target")
    return list(runs.defer("rows", "report").order_by("pk"))


def file_of(run: TrainingRun) -> str:
    """What the rows of a training were uploaded as; trainings of before kept no name."""
    return str(run.options.get("file", ""))


def bases(task: Task) -> list[TargetModel]:
    """The targets that a training may start from: those whose files our model server has."""
    return list(task.targets.filter(url="").exclude(source=""))


def current_target(task: Task) -> TargetModel | None:
    """The first target of the newest round that was opened; what a next target is compared with."""
    asked = RoundTarget.objects.filter(round__task=task).exclude(round__state__in=PLANNED)
    newest = asked.select_related("target__task").order_by("-round__number", "position").first()
    return newest.target if newest else None


def default_base(task: Task) -> tuple[str, str]:
    """(source, revision) of the current target, if our model server has its files.

    Else two empty strings: the starters' encoder.
    """
    target = current_target(task)
    return (target.source, target.revision) if target and not target.url else ("", "")


def free_name(task: Task, number: int) -> str:
    """Return a name for the target of a round that no target of the task has."""
    name = f"{task.code}-round-{number}"
    taken = set(task.targets.filter(name__startswith=name).values_list("name", flat=True))
    names = itertools.chain([name], (f"{name}-{count}" for count in itertools.count(2)))
    return next(each for each in names if each not in taken)


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
    ring: bool = True,
    rows: Sequence[Mapping[str, Any]] | None = None,
    file_name: str = "",
) -> TrainingRun:
    """Ask for a training of the task's next target. Locks the task.

    weights: how often a row is seen in an epoch, by source: `seed`, `round1`, `round2` …, and
    `rows12` for what was uploaded for training 12; only these are trained on, all are tested on.
    rows: those of the source `rows`, as a training takes them; file_name: of theirs. base: a folder
    or a hub id with a full commit as `revision`; empty: the starters' encoder. ring: have a worker
    do it. Which datasets and which old target it uses is settled here. Raises TrainingRefused.
    """
    Task.objects.select_for_update(of=("self",), no_key=True).get(pk=task.pk)
    if task.training_runs.filter(state__in=["queued", "running"]).exists():
        raise TrainingRefused(_("A training of this task is under way. Wait for its end."))
    try:
        shape_of(task.config)
    except Untrainable as error:
        raise TrainingRefused(str(error)) from None
    files = [run.pk for run in uploaded(task)]
    released = _check_weights(task, weights, files, has_rows=bool(rows))
    old = current_target(task)
    options = {
        "weights": dict(weights),
        "has_seed": has_seed(task),
        "datasets": list(released.values()),
        "files": files,
        "file": file_name,
        "base": base,
        "revision": revision,
        "seed": seed,
        "epochs": epochs,
        "old": old and old.pk,
    }
    run = TrainingRun.objects.create(task=task, options=options, rows=rows, requested_by=actor)
    log(actor, "training.requested", run, weights=dict(weights))
    if ring:
        enqueue(run.function, run.pk)
    return run


def _check_weights(
    task: Task, weights: Mapping[str, float], files: Sequence[int], *, has_rows: bool
) -> Mapping[str, int]:
    """The newest dataset of every released round by source. Raises TrainingRefused."""
    rounds = list(task.rounds.all())
    newest = latest_datasets(rounds)
    released = {f"round{r.number}": newest[r.pk].pk for r in rounds if r.pk in newest}
    known = {f"round{r.number}" for r in rounds}
    others = {f"{ROWS}{pk}" for pk in files} | ({ROWS} if has_rows else set())
    for name, weight in weights.items():
        if name == SEED:
            if not has_seed(task):
                raise TrainingRefused(
                    _("%(task)s has no seed rows. Leave them out.") % {"task": task.code}
                )
        elif name in others:
            pass
        elif name not in known:
            values = {"task": task.code, "name": name.replace("round", "round ")}
            raise TrainingRefused(_("%(task)s has no %(name)s.") % values)
        elif name not in released:
            number = name.removeprefix("round")
            raise TrainingRefused(
                _("Round %(number)s has not been released. Release it, or leave it out.")
                % {"number": number}
            )
        if not 0 < weight <= MOST_WEIGHT:
            raise TrainingRefused(
                _("The weight of %(name)s is %(weight)g; it must be above 0 and at most %(most)d.")
                % {"name": name, "weight": weight, "most": MOST_WEIGHT}
            )
    if not weights:
        raise TrainingRefused(_("Choose at least one round, the seed rows or uploaded rows."))
    return released


@transaction.atomic
def register_trained(
    *, run: TrainingRun, number: int, name: str, actor: User | None
) -> TargetModel:
    """Make the trained model a target and put it into the loop of a round. Locks the task.

    A round that does not exist is made, as a draft that grew out of the rounds trained on; an
    existing one must not have been opened. Raises TrainingRefused.
    """
    if run.state != TrainingRun.State.DONE:
        raise TrainingRefused(
            _("This training is %(state)s; only a finished one has a model.")
            % {"state": _(run.state)}
        )
    task = Task.objects.select_for_update(of=("self",), no_key=True).get(pk=run.task_id)
    round = _prepared_round(task, run, number, actor)
    fields = {"source": run.report["folder"], "serving": serving_of(task.config)}
    known = TrainingRun.objects.get(pk=run.pk).target
    if known is None:
        try:
            TargetModel(task=task, name=name, **fields).full_clean()
        except ValidationError as error:
            raise TrainingRefused(" ".join(error.messages)) from None
    kept = known.name if known else name
    target = register_target(task=task, name=kept, round=round, actor=actor, **fields)
    TrainingRun.objects.filter(pk=run.pk).update(target=target, round=round)
    return target


def _prepared_round(task: Task, run: TrainingRun, number: int, actor: User | None) -> Round:
    """The round of that number, made if it is the next one; locked, so that it is not opened."""
    check_round(task, number)
    round = task.rounds.select_for_update(of=("self",)).filter(number=number).first()
    if round is None:
        names = run.options["weights"]
        sources = [name.removeprefix("round") for name in names if name.startswith("round")]
        parents = task.rounds.filter(number__in=sources)
        kept = Exists(Context.objects.filter(round=OuterRef("pk"), is_retired=False))
        opened = task.rounds.filter(kept, opened_at__isnull=False)
        before = opened.order_by("number").last()
        round = plan_round(task=task, actor=actor, fields={}, parents=parents, contexts_of=before)
    refuse_opened(round)
    return round


def check_round(task: Task, number: int) -> None:
    """Raises TrainingRefused if no target can join a round of that number, or a new one."""
    round = task.rounds.filter(number=number).first()
    if round is not None:
        refuse_opened(round)
        return
    last = task.rounds.aggregate(last=Max("number"))["last"] or 0
    if number != last + 1:
        raise TrainingRefused(
            _("There is no round %(number)d. The next new one is %(next)d.")
            % {"number": number, "next": last + 1}
        )


def refuse_opened(round: Round) -> None:
    """Raises TrainingRefused."""
    if round.state not in PLANNED:
        raise TrainingRefused(
            _("Round %(number)d is %(state)s. A target joins a round before it is opened.")
            % {"number": round.number, "state": _(round.state)}
        )
