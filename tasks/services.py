"""Writes about tasks, rounds, contexts and targets."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max, Model, QuerySet
from django.forms.models import model_to_dict
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from dynabench.accounts.models import User
from dynabench.accounts.services import log
from tasks.budgets import reached
from tasks.config_saving import LONGEST_DIFF, diff, usable
from tasks.models import (
    Context,
    ContextBatch,
    Round,
    RoundTarget,
    TargetModel,
    Task,
    context_digest,
)
from tasks.selectors import WRITING_TIME, used, writers
from tasks.targets.ask_before_opening import Silent, ask_targets

OFFICIAL = Path(__file__).parent / "official"
State = Round.State
NEXT_STATES: dict[str, tuple[str, ...]] = {
    State.DRAFT: (State.READY, State.OPEN),
    State.READY: (State.DRAFT, State.OPEN),
    State.OPEN: (State.PAUSED, State.CLOSED),
    State.PAUSED: (State.OPEN, State.CLOSED),
    State.CLOSED: (State.OPEN, State.RELEASED),
    State.RELEASED: (),
}
REACHED = {
    "date": gettext_noop("Its end has come. Move the date first."),
    "collected": gettext_noop("It has collected all its examples. Raise the number first."),
    "fooling": gettext_noop("It has all its verified fooling examples. Raise the number first."),
    "money": gettext_noop("Its money is spent. Raise the sum first."),
}


NO_CONTEXTS = gettext_noop(
    "Round %(number)d has no context to copy: all are retired, as those of imported history, or "
    "it has none."
)
TARGETS_FIXED = gettext_lazy(
    "The targets of a round are fixed once it was opened. Plan a new round, or replace a broken "
    "target while nothing was collected."
)


class RoundError(Exception):
    """A round cannot go to the wanted state; the message says why."""


class TaskExists(Exception):
    """The code of a new task is taken; the message says so."""


def install_official_tasks() -> list[Task]:
    """Create the official tasks that are missing, each with a ready first round and its contexts.

    Returns the new ones. What exists is left as its owners made it. One transaction a task.
    """
    return [
        _install(folder)
        for folder in sorted(OFFICIAL.iterdir())
        if (folder / "task.yaml").exists() and not Task.objects.filter(code=folder.name).exists()
    ]


@transaction.atomic
def _install(folder: Path) -> Task:
    text = (folder / "task.yaml").read_text()
    task = create_task(code=folder.name, config_text=text, actor=None, is_official=True)[0]
    first = Round.objects.create(task=task, number=1)
    with (folder / "contexts.jsonl").open() as lines:
        store_contexts(round=first, rows=map(json.loads, lines), file_name="contexts.jsonl")
    set_round_state(round=first, state=State.READY, actor=None)
    return task


@transaction.atomic
def create_task(
    *, code: str, config_text: str, actor: User | None, **fields: bool
) -> tuple[Task, list[str]]:
    """Make a task, and tell what to know of its configuration; no lock, a unique code.

    One of Dynabench 1.0 is converted. Raises ConfigError, TaskExists.
    """
    config, text, notes = usable(config_text)
    told = {"config_text": text, "name": config.name, "summary": config.summary, **fields}
    task, created = Task.objects.get_or_create(code=code, defaults=told)
    if not created:
        raise TaskExists(_("There is a task %(code)s. Take another code.") % {"code": code})
    log(actor, "task.created", task, fields=sorted(fields), diff=diff("", text)[:LONGEST_DIFF])
    return task, notes


@transaction.atomic
def change_task(*, task: Task, actor: User, fields: Mapping[str, bool]) -> None:
    """Show a task or hide it, let people try it out or not; no lock, the last one wins."""
    log(actor, "task.changed", task, fields=changed_fields(task, fields))


def changed_fields(row: Model, values: Mapping[str, Any]) -> list[str]:
    """Store the values that differ; returns their names."""
    changed = [name for name, value in values.items() if getattr(row, name) != value]
    for name in changed:
        setattr(row, name, values[name])
    row.save(update_fields=changed)
    return changed


@transaction.atomic
def store_contexts(
    *,
    round: Round,
    rows: Iterable[Mapping[str, Any]],
    file_name: str,
    actor: User | None = None,
) -> ContextBatch:
    """Store checked rows (context fields, `tag`, `metadata`) as one batch; no lock.

    A context that the round already has is left out by its unique digest.
    """
    batch = ContextBatch.objects.create(round=round, file_name=file_name, imported_by=actor)
    names = [component.name for component in round.task.config.context]
    contexts = []
    for row in rows:
        fields = {name: row[name] for name in names if name in row}
        contexts.append(
            Context(
                round=round,
                batch=batch,
                fields=fields,
                tag=row.get("tag") or "",
                metadata=row.get("metadata") or {},
                digest=context_digest(fields),
            )
        )
    Context.objects.bulk_create(contexts, batch_size=500, ignore_conflicts=True)
    log(actor, "contexts.imported", round, file=file_name, rows=len(contexts))
    return batch


@transaction.atomic
def set_retired(*, contexts: QuerySet[Context], is_retired: bool, actor: User) -> int:
    """Hand contexts out no more, or again; returns how many there are. No lock."""
    chosen = list(contexts.values_list("pk", flat=True))
    first = contexts.select_related("round__task").first()
    count = Context.objects.filter(pk__in=chosen).update(is_retired=is_retired)
    deed = "retired" if is_retired else "returned"
    log(actor, f"contexts.{deed}", f"{count} contexts", about=first, contexts=chosen)
    return count


@transaction.atomic
def plan_round(
    *,
    task: Task,
    actor: User | None,
    fields: Mapping[str, Any],
    targets: Iterable[TargetModel] = (),
    parents: Iterable[Round] = (),
    contexts_of: Round | None = None,
) -> Round:
    """Make the task's next round, a draft, and copy the contexts of another if wanted.

    Locks the task, so that two owners get two numbers. Raises RoundError without contexts to copy.
    """
    Task.objects.select_for_update(of=("self",), no_key=True).get(pk=task.pk)
    last = task.rounds.aggregate(last=Max("number"))["last"] or 0
    made = Round.objects.create(task=task, number=last + 1, **fields)
    noted = set_targets(made, targets)
    made.parents.set(parents)
    _copy_contexts(contexts_of, made, actor)
    log(actor, "round.created", made, fields=sorted(fields), **noted)
    return made


def _copy_contexts(source: Round | None, round: Round, actor: User | None) -> None:
    """Give a round the contexts of another that are not retired; those that it has stay once.

    Raises RoundError when all are retired, as those of imported history.
    """
    if source is None:
        return
    if not source.contexts.filter(is_retired=False).exists():
        raise RoundError(_(NO_CONTEXTS) % {"number": source.number})
    rows = (
        {**context.fields, "tag": context.tag, "metadata": context.metadata}
        for context in source.contexts.filter(is_retired=False).order_by("pk").iterator()
    )
    file_name = f"(contexts of round {source.number})"
    store_contexts(round=round, rows=rows, file_name=file_name, actor=actor)


@transaction.atomic
def change_round(
    *,
    round: Round,
    actor: User,
    fields: Mapping[str, Any],
    targets: Iterable[TargetModel] | None = None,
    parents: Iterable[Round] | None = None,
    contexts_of: Round | None = None,
) -> Round:
    """Change what a round is to be, and close it if its new budget is reached. Locks the round.

    What is not given stays. The rule stays once it was opened, and no contexts are copied into it
    then. Raises RoundError when it was released, or when other targets are given once it was
    opened.
    """
    locked = Round.objects.select_for_update(of=("self",)).get(pk=round.pk)
    if locked.state == State.RELEASED:
        raise RoundError(_("A released round does not change any more."))
    fixed = ("rule",) if locked.opened_at else ()
    noted: dict[str, Any] = {
        "fields": changed_fields(
            locked, {name: one for name, one in fields.items() if name not in fixed}
        )
    }
    if targets is not None:
        noted |= set_targets(locked, targets)
    if not locked.opened_at:
        _copy_contexts(contexts_of, locked, actor)
    if parents is not None:
        locked.parents.set(parents)
    log(actor, "round.changed", locked, **noted)
    return close_if_due(round=locked)


def loop_of(round: Round) -> list[TargetModel]:
    """The round's targets now, in their order."""
    entries = RoundTarget.objects.filter(round=round).select_related("target")
    return [entry.target for entry in entries]


def set_targets(round: Round, targets: Iterable[TargetModel]) -> dict[str, Any]:
    """Exactly these targets, shown as Model A, Model B … in this order; what to log, with names.

    Raises RoundError when that is a change and the round was opened. Its caller holds the round.
    """
    wanted = list(targets)
    before = loop_of(round)
    if wanted == before:
        return {}
    if round.has_fixed_targets:
        raise RoundError(TARGETS_FIXED)
    round.round_targets.all().delete()
    RoundTarget.objects.bulk_create(
        RoundTarget(round=round, target=target, position=position)
        for position, target in enumerate(wanted)
    )
    return {"targets": {"before": [t.name for t in before], "after": [t.name for t in wanted]}}


def set_round_state(*, round: Round, state: str, actor: User | None, reason: str = "") -> Round:
    """Move a round along NEXT_STATES. Locks the round.

    A round to open asks its targets first, before any lock: call it outside transactions. People
    who are writing when it closes may finish for 15 minutes (`writing_until`). `reason` is kept in
    the log. Raises RoundError when the step does not exist, when a round to open has no context,
    has reached its budget or has a target that does not answer, when another round of the task is
    live, or when a round to release is still being written.
    """
    noted: dict[str, Any] = {"reason": reason} if reason else {}
    asked: list[TargetModel] = []
    if state == State.OPEN:
        asked, noted["targets"] = _asked_targets(round)
    return _move(round, state, actor, noted, asked)


def _check_step(round: Round, state: str) -> None:
    if state not in NEXT_STATES[round.state]:
        states = {"before": _(round.state), "after": _(state)}
        raise RoundError(_("A %(before)s round cannot become %(after)s.") % states)


def _asked_targets(round: Round) -> tuple[list[TargetModel], dict[str, str]]:
    """The targets of a round that may open, and the version of each that answered an example."""
    now = Round.objects.select_related("task").get(pk=round.pk)
    _check_step(now, State.OPEN)
    with transaction.atomic():
        _check_can_open(now)  # said before anybody waits for a target
    targets = loop_of(now)
    try:
        return targets, ask_targets(targets, now)
    except Silent as error:
        raise RoundError(str(error)) from None


@transaction.atomic
def _move(
    round: Round,
    state: str,
    actor: User | None,
    noted: dict[str, Any],
    asked: list[TargetModel],
) -> Round:
    """The step itself; `asked`: the targets as they were when they answered."""
    locked = Round.objects.select_for_update(of=("self",)).get(pk=round.pk)
    _check_step(locked, state)
    changes: dict[str, Any] = {"state": state}
    if state == State.OPEN:
        _check_can_open(locked)
        if {target.pk for target in asked} != {target.pk for target in loop_of(locked)}:
            raise RoundError(_("Its targets were changed at the same moment. Open it again."))
        check_asked(asked)
        changes |= {"opened_at": locked.opened_at or timezone.now(), "writing_until": None}
    elif state == State.CLOSED:
        now = timezone.now()
        noted["writing"] = writers(locked, now).count()
        changes |= {"closed_at": now, "writing_until": now + WRITING_TIME}
        if not noted["writing"]:
            changes["writing_until"] = None
    elif state == State.RELEASED and locked.is_being_written:
        until = {"time": f"{locked.writing_until:%H:%M}"}
        raise RoundError(_("People may finish writing until %(time)s UTC.") % until)
    for name, value in changes.items():
        setattr(locked, name, value)
    try:
        with transaction.atomic():
            locked.save(update_fields=list(changes))
    except IntegrityError:  # round_one_live
        raise RoundError(_("Another round was opened at the same moment.")) from None
    log(actor, f"round.{state}", locked, **noted)
    return locked


def check_asked(asked: Sequence[TargetModel]) -> None:
    """Raises RoundError unless the targets are what they were when they answered. Locks them.

    The lock lets none become another model before the round is seen to have been opened with it.
    """
    rows = TargetModel.objects.filter(pk__in=[target.pk for target in asked]).order_by("pk")
    now = {target.pk: target for target in rows.select_for_update(of=("self",), no_key=True)}
    for target in asked:
        if model_to_dict(now[target.pk]) != model_to_dict(target):
            told = {"target": target.name}
            raise RoundError(_("%(target)s was changed at the same moment. Try again.") % told)


def close_if_due(*, round: Round) -> Round:
    """Close an open round whose end has come or whose budget is reached; returns it as it is then.

    Locks the round when it closes it. Without a budget nothing is counted. Called where a budget
    may have been reached: after an example, after a vote, and by requests that see the end pass.
    """
    if round.state != State.OPEN:
        return round
    why = reached(round.budget, used(round), timezone.now())
    if why is None:
        return round
    try:
        return set_round_state(round=round, state=State.CLOSED, actor=None, reason=why)
    except RoundError:  # another was first
        return Round.objects.get(pk=round.pk)


def _check_can_open(round: Round) -> None:
    others = round.task.rounds.exclude(pk=round.pk)
    live = others.filter(state__in=[State.OPEN, State.PAUSED]).first()
    if live:
        told = {"number": live.number, "state": _(live.state)}
        raise RoundError(_("Round %(number)d is %(state)s. Close it first.") % told)
    if not round.task.config.context:  # one empty context a round; an import has it retired
        empty = round.contexts.filter(digest=context_digest({}))
        if not empty.update(is_retired=False):
            store_contexts(round=round, rows=[{}], file_name="(no contexts)")
    if not round.contexts.filter(is_retired=False).exists():
        raise RoundError(_("The round has no contexts. Import some first."))
    if why := reached(round.budget, used(round), timezone.now()):
        raise RoundError(_("The round would close at once. %(why)s") % {"why": _(REACHED[why])})
