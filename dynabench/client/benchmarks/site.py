"""Read what a site has of a folder's task."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dynabench.client import types
from dynabench.client.client import DynabenchClient
from dynabench.client.errors import NotFound, PermissionDenied


class ChangedMeanwhile(Exception):
    """Raised if the site changed between the plan and a step. The message says what to do."""

    def __init__(self, what: str) -> None:
        """Create an error about a part of the task."""
        super().__init__(
            f"Someone else has changed {what} since the plan. Nothing was overwritten. "
            "Run the same command again to see the new plan."
        )


class NoRight(Exception):
    """Raised if the person may not change the task. The message says who may."""


@dataclass(frozen=True)
class Site:
    """A task as a site has it now.

    rounds: None for an arena, which has none. members, invitations: None if the person may not see
    them. own_name: the pseudonym of the person who applies.
    """

    task: types.FullTask
    config: types.Config
    targets: Sequence[types.TargetModel]
    rounds: Sequence[types.Round] | None
    members: Sequence[types.Member] | None
    invitations: Sequence[types.Invitation] | None
    own_name: str

    def find_target(self, name: str) -> types.TargetModel | None:
        """Return the target with a name, or None."""
        return next((target for target in self.targets if target["name"] == name), None)

    def find_round(self, number: int) -> types.Round | None:
        """Return the round with a number, or None."""
        return next((round for round in self.rounds or () if round["number"] == number), None)


def read_site(client: DynabenchClient, code: str) -> Site | None:
    """Return a task as the site has it; None if it does not exist, or the person may not see it.

    Raises NoRight for people who may not edit the task.
    """
    try:
        # A private task of others answers as if it did not exist.
        task = client.task(code)
    except NotFound:
        return None
    try:
        # Only editors read it, so this tells whether the person is one.
        config = client.config(code)
    except (PermissionDenied, NotFound) as error:
        if isinstance(error, PermissionDenied) and error.code == "scope":
            # The person may edit, but not with this key.
            raise
        role = f"Your role is {task['role']}" if task["role"] else "You aren't a member"
        message = f"You can't change the task {code}. {role}. Ask an owner to make you an editor."
        raise NoRight(message) from None
    # Before the members, because a new account has no pseudonym until it asks for it.
    own_name = client.me()["pseudonym"]
    members: Any = None
    invitations: Any = None
    try:
        members, invitations = client.members(code), client.task_invitations(code)
    except PermissionDenied:
        # Only owners see addresses.
        members = None
    try:
        rounds = client.rounds(code)
    except NotFound:
        # An arena, which compares answers without rounds.
        rounds = None
    targets = client.target_models(code)
    return Site(task, config, targets, rounds, members, invitations, own_name)
