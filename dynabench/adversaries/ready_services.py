"""Ready adversaries of official tasks, which owners create and start with one click."""

from collections.abc import Mapping
from typing import Any

import yaml
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.errors import Refused
from dynabench.adversaries.fit import check_fits
from dynabench.adversaries.kinds.base import KINDS
from dynabench.adversaries.models import Adversary, AdversaryRun
from dynabench.adversaries.services import create_adversary, start_run
from tasks.models import Task
from tasks.services import OFFICIAL_FOLDER

READY_FILE = "adversaries.yaml"
READY_BUDGET = {"max_calls": 1000, "max_examples": 10, "max_minutes": 15}
"""Small enough that people can judge what comes of a first click."""


def list_ready_adversaries(task: Task) -> list[Mapping[str, Any]]:
    """Return the ready adversaries that fit the task: name, kind, options of each.

    Those that its owners retired are left out. Empty if the task is not official, or was changed so
    that none fits.
    """
    file = OFFICIAL_FOLDER / task.code / READY_FILE
    if not task.is_official or not file.exists():
        return []
    retired_adversaries = task.adversaries.filter(retired_at__isnull=False)
    retired_names = set(retired_adversaries.values_list("name", flat=True))
    ready_adversaries = []
    for one in yaml.safe_load(file.read_text()):
        # Owners of an official task may have changed what people write.
        try:
            check_fits(task, KINDS[one["kind"]])
        except Refused:
            continue
        if one["name"] not in retired_names:
            ready_adversaries.append(one)
    return ready_adversaries


def start_ready_adversaries(*, task: Task, actor: User) -> list[AdversaryRun]:
    """Create the ready adversaries that the task lacks, and start those that are idle.

    Returns the new runs. Takes the locks of `create_adversary` and `start_run`, one after another.
    Raises Refused if the task has none, or if none can start, for the reason of the last one.
    """
    runs, refusal = [], None
    for one in list_ready_adversaries(task):
        # One that runs, or that another click creates now, is no reason to leave out the others.
        try:
            adversary = task.adversaries.filter(name=one["name"]).first()
            if adversary is None:
                adversary = _create_ready_adversary(task, actor, one)
            runs.append(start_run(adversary=adversary, actor=actor))
        except Refused as error:
            refusal = error
    if not runs:
        raise refusal or Refused(_("This task has no ready adversaries."), code="none_ready")
    return runs


def _create_ready_adversary(task: Task, actor: User, one: Mapping[str, Any]) -> Adversary:
    """Create a ready adversary, given as in READY_FILE. Raises Refused and Invalid."""
    defaults = {setting.name: setting.default for setting in KINDS[one["kind"]].settings}
    return create_adversary(
        task=task,
        actor=actor,
        kind=one["kind"],
        options=defaults | one["options"],
        name=one["name"],
        **READY_BUDGET,
    )
