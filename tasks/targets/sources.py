"""Check which sources a target may name, and which folders administrators have allowed.

The model server loads anything that a source names, with the rights of the site. So an owner may
name a model on a hub, an installed package, or a folder of a model that they may know.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.errors import Refused
from serving.folders import resolve_below
from serving.spec import HUB_ID_PATTERN, PACKAGE_PREFIX
from tasks.models import TargetModel, Task
from tasks.permissions import can_review

TRAINED_FOLDER = "targets"
"""The folder below MODELS_HOME with each task's trained models."""


def can_copy(user: User, target: TargetModel) -> bool:
    """Return whether a person may see a target and its options, which may contain instructions."""
    return can_review(user, target.task) or (target.task.is_visible and not target.options)


def check_allowed_folder(
    actor: User, task: Task, fields: Mapping[str, Any], old_source: str = ""
) -> dict[str, Any]:
    """Return a target's settings, with `allowed_folder` if they name another source.

    old_source: the current source. Raises Refused with the same message for every folder that is
    not allowed, whether it exists or not.
    """
    source = fields.get("source", old_source)
    if source == old_source:
        return {**fields}
    if actor.is_superuser:
        return {**fields, "allowed_folder": find_outside_folder(source)}
    # A source that the person knows from another target may be used again, folders included.
    copied_target = _find_copied_target(actor, source)
    if copied_target is None and not _is_allowed_source(task, source):
        message = _(
            "Enter a hub ID such as org/name, or package:NAME. To use another folder, "
            "ask an administrator."
        )
        raise Refused(message, code="target", field="source")
    return {**fields, "allowed_folder": copied_target.allowed_folder if copied_target else ""}


def find_outside_folder(source: str) -> str:
    """Return a source that is a folder outside the models' folder; "" for other sources."""
    is_elsewhere = os.path.isabs(source) and resolve_below(source, _get_home()) is None
    if is_elsewhere:
        return source
    return ""


def _get_home() -> str:
    return str(settings.MODELS_HOME)


def _find_copied_target(actor: User, source: str) -> TargetModel | None:
    """Return a target with this source that the person may see, or None."""
    rows = TargetModel.objects.filter(url="", source=source).exclude(source="")
    targets = rows.select_related("task").order_by("-allowed_folder", "pk")
    return next((target for target in targets if can_copy(actor, target)), None)


def _is_allowed_source(task: Task, source: str) -> bool:
    """Return whether a task's owners may use a source that no target they know has."""
    if not source or source.startswith(PACKAGE_PREFIX):
        return True
    if HUB_ID_PATTERN.fullmatch(source) and not {".", ".."} & set(
        source.partition("@")[0].split("/")
    ):
        return True
    folder, home = resolve_below(source, _get_home()), Path(os.path.realpath(_get_home()))
    if folder is None:
        return False
    # Below `targets` each task has a folder of trained models, named by its code.
    top_folder, *inner_parts = folder.relative_to(home).parts
    if top_folder == TRAINED_FOLDER and inner_parts[:1] != [task.code]:
        return False
    # Another task's folder, or one around or inside it, would let an owner read its model.
    other_targets = TargetModel.objects.filter(url="", source__startswith="/").exclude(task=task)
    for other_source in other_targets.values_list("source", flat=True):
        # By real paths, so that a link does not hide where a folder lies.
        if _are_overlapping(folder, Path(os.path.realpath(other_source))):
            return False
    return True


def _are_overlapping(first: Path, second: Path) -> bool:
    """Return whether the folders are the same or one lies within the other."""
    return first.is_relative_to(second) or second.is_relative_to(first)
