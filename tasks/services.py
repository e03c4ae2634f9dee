"""Writes about tasks themselves."""

import json
from collections.abc import Mapping
from pathlib import Path

from django.db import transaction
from django.utils.translation import gettext as _

from dynabench.accounts.models import User
from dynabench.accounts.services import log
from dynabench.lib.errors import Refused
from dynabench.lib.rows import changed_fields
from tasks.config_saving import LONGEST_DIFF, diff, usable
from tasks.contexts.services import store_contexts
from tasks.models import Round, Task
from tasks.rounds.states import set_round_state

OFFICIAL = Path(__file__).parent / "official"


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
    set_round_state(round=first, state=Round.State.READY, actor=None)
    return task


@transaction.atomic
def create_task(
    *, code: str, config_text: str, actor: User | None, **fields: bool
) -> tuple[Task, list[str]]:
    """Make a task, and tell what to know of its configuration; no lock, a unique code.

    One of Dynabench 1.0 is converted. Raises ConfigError, Refused.
    """
    config, text, notes = usable(config_text)
    told = {"config_text": text, "name": config.name, "summary": config.summary, **fields}
    task, created = Task.objects.get_or_create(code=code, defaults=told)
    if not created:
        raise Refused(
            _("There is a task %(code)s. Take another code.") % {"code": code},
            code="exists",
            field="code",
        )
    log(actor, "task.created", task, fields=sorted(fields), diff=diff("", text)[:LONGEST_DIFF])
    return task, notes


@transaction.atomic
def change_task(*, task: Task, actor: User, fields: Mapping[str, bool]) -> None:
    """Show a task or hide it, let people try it out or not; no lock, the last one wins."""
    log(actor, "task.changed", task, fields=changed_fields(task, fields))
