"""Notify later rooms if somebody's role no longer lets them read a task's labels."""

from collections.abc import Callable, Mapping

from core.accounts.models import User
from tasks.models import Task
from tasks.permissions import READERS

LOST_READ_ACCESS_HOOKS: list[Callable[[Task, User], None]] = []
"""Functions to call with the task and a person. Later rooms add theirs when the site starts."""


def notify_lost_read_access(task: Task, roles: Mapping[User, tuple[str, str | None]]) -> None:
    """Notify later rooms of people whose role no longer lets them read the task's labels.

    roles: each person's former and new role. Call it in the transaction that changes the roles.
    """
    for user, (old_role, new_role) in roles.items():
        # Somebody who still reads labels in another role has nothing to note.
        if old_role in READERS and new_role not in READERS:
            for hook in LOST_READ_ACCESS_HOOKS:
                hook(task, user)
