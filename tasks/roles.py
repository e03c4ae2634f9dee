"""What people may do in a task, by their role. docs/states-roles-limits.md shows the same table."""

from enum import StrEnum


class May(StrEnum):
    """A permission in a task."""

    SEE = "see"
    """Its page, numbers, boards and published models."""
    TRY = "try"
    """The models, where the task lets people try them."""
    TAKE = "take"
    """What leaves: released files, published conversations, examples of open evaluation sets."""
    SUBMIT = "submit"
    """Models."""
    WRITE = "write"
    JUDGE = "judge"
    OVERSEE = "oversee"
    """How many there are, rounds and contexts: what tells no label and no vote."""
    READ = "read"
    """What is not public: examples, labels, votes, exports. Who reads labels never judges."""
    REVIEW = "review"
    """Examples, reports and the numbers about people; who the members are; the targets."""
    EDIT = "edit"
    """Configuration (and so copies), rounds, contexts, targets and evaluation sets."""
    OWN = "own"
    """Members, their addresses and invitations; who sees the task, releases, whether it stays."""


PERSON, VISITOR = "person", "visitor"
"""Somebody without a role in the task: signed in, and not."""
BLIND_OWNER = "blind owner"
"""An owner who judges for the time being, and reads nothing that tells labels or votes."""
IDLE_READER = "idle reader"
"""Somebody whose role reads labels, but does not count while its address is not confirmed."""
ADMINISTRATOR = "administrator"

_SEES = frozenset({May.SEE, May.TRY})
_PUBLIC_PERMISSIONS = _SEES | {May.TAKE, May.SUBMIT}
_VIEWER = _PUBLIC_PERMISSIONS | {May.READ, May.OVERSEE}
_REVIEWER = _VIEWER | {May.WRITE, May.REVIEW}
_EDITOR = _REVIEWER | {May.EDIT}
_OWNER = _EDITOR | {May.OWN}

PERMISSIONS_BY_ROLE = {
    ADMINISTRATOR: _OWNER,
    "owner": _OWNER,
    BLIND_OWNER: _OWNER - {May.READ, May.REVIEW} | {May.JUDGE},
    "editor": _EDITOR,
    "reviewer": _REVIEWER,
    "viewer": _VIEWER,
    "annotator": _SEES | {May.WRITE, May.JUDGE},
    "writer": _SEES | {May.WRITE},
    "judge": _SEES | {May.JUDGE},
    PERSON: _PUBLIC_PERMISSIONS | {May.WRITE, May.JUDGE},
    VISITOR: _SEES | {May.TAKE},
}
"""The two last in a task that everybody sees."""


def get_permissions(role: str, *, is_visible: bool) -> frozenset[May]:
    """Return the permissions of `role`, a key of the table, in a visible or a private task.

    All members of a visible task also have the permissions of the public. A role that is not in the
    table, as stored by another release during an upgrade, grants nothing.
    """
    # They may have read labels when their role counted, so they may not judge now.
    if role == IDLE_READER:
        return get_permissions(PERSON, is_visible=is_visible) - {May.JUDGE}
    # To outsiders a private task does not exist.
    if role in (PERSON, VISITOR) and not is_visible:
        return frozenset()
    return PERMISSIONS_BY_ROLE.get(role, frozenset()) | (
        _PUBLIC_PERMISSIONS if is_visible and role != VISITOR else frozenset()
    )


_PARTICIPANT = _SEES | {May.WRITE, May.JUDGE}


def get_participant_permissions(role: str | None) -> frozenset[May]:
    """Return the permissions of a panel participant with this role in the task.

    At most those needed to take part, because the participant is anonymous. Empty without a role,
    even in a visible task.
    """
    return PERMISSIONS_BY_ROLE.get(role or "", frozenset()) & _PARTICIPANT


def find_roles_with(permission: May) -> frozenset[str]:
    """Return the members' roles that have this permission in every task."""
    members = PERMISSIONS_BY_ROLE.keys() - {ADMINISTRATOR, BLIND_OWNER, PERSON, VISITOR}
    return frozenset(role for role in members if permission in PERMISSIONS_BY_ROLE[role])
