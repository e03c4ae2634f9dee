"""Creates the ready-made communities that come with the code, with tasks made from local files.

`ready/<name>/community.yaml` describes the community. Each folder next to it is a task, with
`task.yaml`, evaluation sets as JSON lines, and `pool.jsonl`, the examples of a first round. This
round is released, and people choose training rows from it.
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
from dynabench.communities.permissions import JOINED_STATE
from evaluation.test_sets.parsing import SetFile
from evaluation.test_sets.services import create_set_with_version
from tasks.models import Round, Task, TaskMember
from tasks.services import create_task, install_official_tasks

READY_FOLDER = Path(__file__).parent / "ready"
POOL_NAME = "pool"


@cache
def read_ready_communities() -> Mapping[str, Mapping[str, Any]]:
    """Return the contents of each ready-made `community.yaml`, by the community's name."""
    files = sorted(READY_FOLDER.glob("*/community.yaml"))
    return {file.parent.name: yaml.safe_load(file.read_text()) for file in files}


def add_ready_community(*, name: str, owner: User | None) -> Community:
    """Create a ready-made community with its tasks, or its missing parts.

    owner: the owner of the community and of the new tasks; if None, only administrators manage
    them.

    1. Install the official tasks that the community names and that have no folder.
    2. Create the community.
    3. Create each task and fill it; a task is hidden until its sets exist.

    Existing rows are kept. Each task has its own transaction. Takes no lock, because names are
    unique. Raises Refused.
    """
    description = read_ready_communities()[name]
    folders = {code: READY_FOLDER / name / code for code in description["tasks"]}
    official_codes = {code for code, folder in folders.items() if not folder.is_dir()}
    if Task.objects.filter(code__in=official_codes).count() < len(official_codes):
        install_official_tasks()
    community = _get_or_create_community(name, description, owner)
    for code, folder in folders.items():
        if code in official_codes:
            task = Task.objects.get(code=code)
        else:
            task = _get_or_create_task(folder, owner)
            _fill_task(task, folder)
        CommunityTask.objects.get_or_create(
            community=community, task=task, defaults={"state": JOINED_STATE}
        )
    return community


@transaction.atomic
def _get_or_create_community(
    name: str, description: Mapping[str, Any], owner: User | None
) -> Community:
    """Return the community, after creating it if it is missing.

    owner: a person to add to its owners, or None.
    """
    texts = {key: description[key] for key in ("name", "summary", "text", "tracks")}
    community, is_new = Community.objects.get_or_create(
        slug=name, defaults={**texts, "is_listed": True}
    )
    if is_new:
        log(owner, "community.added", community)
    if owner:
        community.owners.add(owner)
    return community


@transaction.atomic
def _get_or_create_task(folder: Path, owner: User | None) -> Task:
    """Return the task of the folder, after creating it if it is missing.

    Raises Refused if a different task has the folder's name as its code.
    """
    text = (folder / "task.yaml").read_text()
    existing_task = Task.objects.filter(code=folder.name).first()
    if existing_task:
        if existing_task.config.name != yaml.safe_load(text)["name"]:
            raise Refused(f"There is another task {folder.name}. Nothing was added to it.")
        return existing_task
    task, _notes = create_task(
        code=folder.name, config_text=text, actor=owner, is_visible=False, made_by=owner
    )
    if owner:
        TaskMember.objects.create(
            task=task, user=owner, role=TaskMember.Role.OWNER, address=owner.email
        )
    return task


def _fill_task(task: Task, folder: Path) -> None:
    """Create the task's missing sets and release its pool.

    Makes the task visible, unless it joined a community before: its owners may have hidden it
    since.
    """
    for file in sorted(folder.glob("*.jsonl")):
        if file.stem == POOL_NAME:
            _release_pool(task, file)
        elif not task.evaluation_sets.filter(name=file.stem).exists():
            # Hand-written sets of the code: their answers are public, in this very file.
            rows = SetFile(file, file.name, task.config)
            description = {"name": file.stem, "may_leave": True, "answers_public": True}
            create_set_with_version(rows, task=task, actor=None, **description)
    # Only at first: a task that its owners have hidden since stays hidden.
    if not task.is_visible and not CommunityTask.objects.filter(task=task).exists():
        task.is_visible = True
        task.save(update_fields=["is_visible"])


def _release_pool(task: Task, file: Path) -> None:
    """Import the pool as the task's first round and release it, unless that is done."""
    first_round = task.rounds.filter(number=1).first()
    if first_round is None:
        arguments = ("--task", task.code, "--round", "1", "--policy", "at-least:2")
        call_command("import_examples", str(file), *arguments, stdout=StringIO())
    if not task.rounds.filter(number=1, state=Round.State.RELEASED).exists():
        options = {"dev": 0, "test": 0, "license": "cc0-1.0", "stdout": StringIO()}
        call_command("release_round", task.code, 1, **options)
