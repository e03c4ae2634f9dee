"""Writes: the communities that come ready, with tasks that work from local files.

`ready/<name>/community.yaml` has the page; a folder beside it is a task: `task.yaml`, evaluation
sets as JSON lines, and in `pool.jsonl` a first round that is released, from which people choose.
"""

from collections.abc import Mapping
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import yaml
from django.core.management import call_command
from django.db import transaction

from core.accounts.models import User
from core.accounts.services import log
from core.errors import Refused
from dynabench.communities.models import Community, CommunityTask
from dynabench.communities.permissions import IN
from evaluation.sets.parsing import SetFile
from evaluation.sets.services import create_set_of
from tasks.models import Round, Task, TaskMember
from tasks.services import create_task, install_official_tasks

READY = Path(__file__).parent / "ready"
POOL = "pool"


@cache
def ready() -> Mapping[str, Mapping[str, Any]]:
    """What is said of each, by its name."""
    files = sorted(READY.glob("*/community.yaml"))
    return {file.parent.name: yaml.safe_load(file.read_text()) for file in files}


def add_ready(*, name: str, owner: User | None) -> Community:
    """Make a ready community with its tasks, or what is still missing of it; what is there stays.

    owner: of the community and of the tasks that are made; None: administrators alone run them.
    One transaction for each task, which is hidden until its sets are there; no lock, as names are
    unique. Raises Refused.
    """
    about = ready()[name]
    known = {*Task.objects.filter(code__in=about["tasks"]).values_list("code", flat=True)}
    if any(code not in known and not (READY / name / code).is_dir() for code in about["tasks"]):
        install_official_tasks()
    community = _community(name, about, owner)
    for code in about["tasks"]:
        folder = READY / name / code
        task = _task(folder, owner) if folder.is_dir() else Task.objects.get(code=code)
        if folder.is_dir():
            _fill(task, folder)
        CommunityTask.objects.get_or_create(community=community, task=task, defaults={"state": IN})
    return community


@transaction.atomic
def _community(name: str, about: Mapping[str, Any], owner: User | None) -> Community:
    texts = {key: about[key] for key in ("name", "summary", "text", "tracks")}
    community, is_new = Community.objects.get_or_create(
        slug=name, defaults={**texts, "is_listed": True}
    )
    if is_new:
        log(owner, "community.added", community)
    if owner:
        community.owners.add(owner)
    return community


@transaction.atomic
def _task(folder: Path, owner: User | None) -> Task:
    """The task of the folder, made if there is none. Raises Refused where the code is another's."""
    text, found = (folder / "task.yaml").read_text(), Task.objects.filter(code=folder.name).first()
    if found:
        if found.config.name != yaml.safe_load(text)["name"]:
            raise Refused(f"There is another task {folder.name}. Nothing was added to it.")
        return found
    task, _notes = create_task(
        code=folder.name, config_text=text, actor=owner, is_visible=False, made_by=owner
    )
    if owner:
        TaskMember.objects.create(
            task=task, user=owner, role=TaskMember.Role.OWNER, address=owner.email
        )
    return task


def _fill(task: Task, folder: Path) -> None:
    """Its sets and its pool, as far as they are missing; then everybody sees it."""
    for file in sorted(folder.glob("*.jsonl")):
        if file.stem == POOL:
            _release_pool(task, file)
        elif not task.evaluation_sets.filter(name=file.stem).exists():
            rows = SetFile(file, file.name, task.config)
            about = {"name": file.stem, "may_leave": True, "answers_public": True}
            create_set_of(rows, task=task, actor=None, **about)
    if not task.is_visible and not CommunityTask.objects.filter(task=task).exists():
        task.is_visible = True
        task.save(update_fields=["is_visible"])


def _release_pool(task: Task, file: Path) -> None:
    first = task.rounds.filter(number=1).first()
    if first is None:
        arguments = ("--task", task.code, "--round", "1", "--policy", "at-least:2")
        call_command("import_examples", str(file), *arguments, stdout=StringIO())
    if not task.rounds.filter(number=1, state=Round.State.RELEASED).exists():
        told = StringIO()
        call_command("release_round", task.code, 1, dev=0, test=0, license="cc0-1.0", stdout=told)
