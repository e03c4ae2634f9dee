"""Permissions in a task, by role. docs/states-roles-limits.md shows the same table."""

from enum import StrEnum


class Permission(StrEnum):
    """A permission in a task."""

    SEE = "see"
    """See its page, numbers, boards and published models."""
    TRY = "try"
    """Try the models, if the task allows that."""
    TAKE = "take"
    """Download released files, published conversations and examples of open evaluation sets."""
    SUBMIT = "submit"
    """Submit models."""
    WRITE = "write"
    JUDGE = "judge"
    OVERSEE = "oversee"
    """See counts, rounds and contexts, but no labels and no votes."""
    READ = "read"
    """Read data that is not public: examples, labels, votes, exports. Excludes judging."""
    REVIEW = "review"
    """Act on examples and reports; see the numbers about people, the members and the targets."""
    EDIT = "edit"
    """Change the configuration (so also copy it), rounds, contexts, targets and evaluation sets."""
    OWN = "own"
    """Manage members, addresses, invitations, visibility, releases and deletion of the task."""


PERSON, VISITOR = "person", "visitor"
"""The roles of other people: PERSON if they are signed in, VISITOR if they are not."""
BLIND_OWNER = "blind owner"
"""The role of an owner who currently judges, and so cannot read labels or votes."""
IDLE_READER = "idle reader"
"""A role that reads labels but does not count, because its address is not confirmed."""
ADMINISTRATOR = "administrator"

_SEEING_PERMISSIONS = frozenset({Permission.SEE, Permission.TRY})
_PUBLIC_PERMISSIONS = _SEEING_PERMISSIONS | {Permission.TAKE, Permission.SUBMIT}
_VIEWER_PERMISSIONS = _PUBLIC_PERMISSIONS | {Permission.READ, Permission.OVERSEE}
_REVIEWER_PERMISSIONS = _VIEWER_PERMISSIONS | {Permission.WRITE, Permission.REVIEW}
_EDITOR_PERMISSIONS = _REVIEWER_PERMISSIONS | {Permission.EDIT}
_OWNER_PERMISSIONS = _EDITOR_PERMISSIONS | {Permission.OWN}

PERMISSIONS_BY_ROLE = {
    ADMINISTRATOR: _OWNER_PERMISSIONS,
    "owner": _OWNER_PERMISSIONS,
    BLIND_OWNER: _OWNER_PERMISSIONS - {Permission.READ, Permission.REVIEW} | {Permission.JUDGE},
    "editor": _EDITOR_PERMISSIONS,
    "reviewer": _REVIEWER_PERMISSIONS,
    "viewer": _VIEWER_PERMISSIONS,
    "annotator": _SEEING_PERMISSIONS | {Permission.WRITE, Permission.JUDGE},
    "writer": _SEEING_PERMISSIONS | {Permission.WRITE},
    "judge": _SEEING_PERMISSIONS | {Permission.JUDGE},
    PERSON: _PUBLIC_PERMISSIONS | {Permission.WRITE, Permission.JUDGE},
    VISITOR: _SEEING_PERMISSIONS | {Permission.TAKE},
}
"""The permissions of each role. The roles PERSON and VISITOR apply only in visible tasks."""


def get_permissions(role: str, *, is_visible: bool) -> frozenset[Permission]:
    """Return the permissions of `role` in a visible or a private task.

    All members of a visible task also have the permissions of the public. A role that is not in
    PERMISSIONS_BY_ROLE grants no further permissions. Such a role may come from another release
    during an upgrade.
    """
    # They may have read labels when their role counted, so they may not judge now.
    if role == IDLE_READER:
        return get_permissions(PERSON, is_visible=is_visible) - {Permission.JUDGE}
    # To outsiders a private task does not exist.
    if role in (PERSON, VISITOR) and not is_visible:
        return frozenset()
    return PERMISSIONS_BY_ROLE.get(role, frozenset()) | (
        _PUBLIC_PERMISSIONS if is_visible and role != VISITOR else frozenset()
    )


_PARTICIPANT_PERMISSIONS = _SEEING_PERMISSIONS | {Permission.WRITE, Permission.JUDGE}


def get_participant_permissions(role: str | None) -> frozenset[Permission]:
    """Return the permissions of a panel participant with this role in the task.

    The participant is anonymous, so these are at most the permissions needed to take part. Empty
    without a role, even in a visible task.
    """
    return PERMISSIONS_BY_ROLE.get(role or "", frozenset()) & _PARTICIPANT_PERMISSIONS


def find_roles_with_permission(permission: Permission) -> frozenset[str]:
    """Return the members' roles that have this permission in every task."""
    member_roles = PERMISSIONS_BY_ROLE.keys() - {ADMINISTRATOR, BLIND_OWNER, PERSON, VISITOR}
    return frozenset(role for role in member_roles if permission in PERMISSIONS_BY_ROLE[role])
