"""What later stages note of somebody whose role reads a task's labels no more."""

from collections.abc import Callable, Mapping

from core.accounts.models import User
from tasks.models import Task
from tasks.permissions import READERS

NOTE_HOOKS: list[Callable[[Task, User], None]] = []
"""Called with the task and the person; later stages add theirs when the site starts."""


def note_ended_readers(task: Task, roles: Mapping[User, tuple[str, str | None]]) -> None:
    """Notify later stages of people whose role no longer lets them read the task's labels.

    roles: each person's former and new role. Call it in the transaction that changes the roles.
    """
    for user, (former, role) in roles.items():
        # Somebody who still reads labels in another role has nothing to note.
        if former in READERS and role not in READERS:
            for note in NOTE_HOOKS:
                note(task, user)
