"""Check what people may do with a task, by `tasks.role_permissions`: one function per question."""

from collections.abc import Collection, Iterable

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db.models import F, FilteredRelation, Q, QuerySet, Sum
from django.utils import timezone
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.people import has_confirmed_address
from core.data.prepared import PreparedRead, Slot
from core.errors import Refused
from tasks.models import Generator, TargetModel, Task, TaskMember
from tasks.role_permissions import (
    ADMINISTRATOR,
    BLIND_OWNER,
    IDLE_READER,
    PERSON,
    VISITOR,
    Permission,
    find_roles_with_permission,
    get_participant_permissions,
    get_permissions,
)

Person = User | AnonymousUser
JUDGES = find_roles_with_permission(Permission.JUDGE)
READERS = find_roles_with_permission(Permission.READ)
REVIEWERS = find_roles_with_permission(Permission.REVIEW)
EDITORS = find_roles_with_permission(Permission.EDIT)
OWNERS = find_roles_with_permission(Permission.OWN)
MEMBERSHIP_FIELDS = ("pk", "role", "address", "is_blind")
"""The columns of a membership that `load_tasks_with_roles` reads."""
MEMBER_QUERY = PreparedRead(lambda: TaskMember.objects.filter(task=Slot("task"), user=Slot("user")))


def get_role(user: Person, task: Task) -> str | None:
    """Return the user's role in the task; None if there is none or it does not count now.

    The role is queried once per `task` object, which lives no longer than a request.
    """
    if not user.is_authenticated:
        return None
    # Cached on the object: a page asks for the role in many places, and costs one query.
    if user.pk not in task.roles:
        _cache_roles(user, [task], MEMBER_QUERY.fetch_rows(task=task.pk, user=user.pk))
    return task.roles[user.pk]


def cache_roles(user: Person, tasks: Collection[Task]) -> None:
    """Cache the user's roles in many tasks at once, for `get_role`.

    Makes one query, and a second one if a role was given to an email address.
    """
    if not user.is_authenticated:
        return
    _cache_roles(user, tasks, TaskMember.objects.filter(task__in=tasks, user=user))


def load_tasks_with_roles(tasks: QuerySet[Task], user: Person) -> list[Task]:
    """Return the tasks with the user's roles cached for `get_role`.

    Makes one query, and a second one if a role was given to an email address.
    """
    if not user.is_authenticated:
        return list(tasks)
    # A join to this user's membership only. Joining all members would repeat the tasks.
    own_membership = FilteredRelation("members", condition=Q(members__user=user))
    columns = {f"own_{name}": F(f"own__{name}") for name in MEMBERSHIP_FIELDS}
    tasks_with_roles: list[Task] = list(tasks.annotate(own=own_membership, **columns))
    members = []
    for task in tasks_with_roles:
        # The annotations are no attributes that the model declares, so they are read as such.
        if vars(task)["own_pk"]:
            membership = {name: vars(task)[f"own_{name}"] for name in MEMBERSHIP_FIELDS}
            members.append(TaskMember(task=task, user=user, **membership))
    _cache_roles(user, tasks_with_roles, members)
    return tasks_with_roles


def _cache_roles(user: User, tasks: Collection[Task], members: Iterable[TaskMember]) -> None:
    """Cache the user's roles on the tasks. Makes one query if a role was given to an email address.

    members: the user's memberships in these tasks.
    """
    members_by_task = {member.task_id: member for member in members}
    waiting_pks = [member.pk for member in members_by_task.values() if member.address]
    # A role that was given to an address counts once its person has confirmed it. That takes one
    # more query, which makers of tasks and people who accepted an invitation do not need.
    effective_ids: set[int] = set()
    if waiting_pks:
        members = TaskMember.objects.select_effective().filter(pk__in=waiting_pks)
        effective_ids.update(members.values_list("pk", flat=True))
    for task in tasks:
        member = members_by_task.get(task.pk)
        # Three things are kept apart: the role that counts, the one of a reader whose address is
        # not confirmed, and an owner who judges blindly for the time being.
        is_effective = member is not None and (not member.address or member.pk in effective_ids)
        task.roles[user.pk] = member.role if member and is_effective else None
        if member and member.role in READERS and not is_effective:
            task.idle_readers.add(user.pk)
        if member and member.role in OWNERS and is_effective and member.is_blind:
            task.blind_owners.add(user.pk)


def _has_permission(user: Person, task: Task, permission: Permission) -> bool:
    """Return whether the person has the permission. No query if everybody has it."""
    # The order matters: suspended people are visitors whatever they were, then come administrators
    # and people of a panel, and only then what everybody may without a query.
    if not user.is_active:
        role = VISITOR
    elif user.is_superuser:
        role = ADMINISTRATOR
    elif isinstance(user, User) and user.is_panel_participant:
        return permission in get_participant_permissions(get_role(user, task))
    elif permission in get_permissions(VISITOR, is_visible=task.is_visible):
        return True
    else:
        # Whoever drops the address that a role was given to may have read the labels before.
        role = get_role(user, task) or (IDLE_READER if user.pk in task.idle_readers else PERSON)
        if user.pk in task.blind_owners:
            role = BLIND_OWNER
    return permission in get_permissions(role, is_visible=task.is_visible)


def can_see(user: Person, task: Task) -> bool:
    """Return whether the person may see the task's page."""
    return _has_permission(user, task, Permission.SEE)


def can_try_out(user: Person, task: Task) -> bool:
    """Return whether the person may try the model without storing anything."""
    return task.allow_try_out and _has_permission(user, task, Permission.TRY)


def can_download(user: Person, task: Task) -> bool:
    """Return whether the person may download released files and other published data."""
    return _has_permission(user, task, Permission.TAKE)


def can_submit(user: Person, task: Task) -> bool:
    """Return whether the person may submit models."""
    return _has_permission(user, task, Permission.SUBMIT)


def can_write(user: Person, task: Task) -> bool:
    """Return whether the person may write examples that are stored."""
    return _has_permission(user, task, Permission.WRITE)


def can_judge(user: Person, task: Task) -> bool:
    """Return whether the person may judge others' examples.

    People who can read labels may not, because they would not judge blind.
    """
    return _has_permission(user, task, Permission.JUDGE)


def can_enter_judging(user: Person, task: Task) -> bool:
    """Return whether the person may open the judging page.

    People who can read labels may open it, too. The page tells them why they cannot judge.
    """
    return _has_permission(user, task, Permission.JUDGE) or _has_permission(
        user, task, Permission.READ
    )


def is_blind_owner(user: Person, task: Task) -> bool:
    """Return whether the person owns the task and judges it blind now."""
    is_member = not user.is_superuser and get_role(user, task) is not None
    return is_member and user.pk in task.blind_owners


def can_judge_as_owner(user: Person, task: Task) -> bool:
    """Return whether the person may judge as an owner of the task. Administrators may not."""
    return not user.is_superuser and get_role(user, task) in OWNERS


def can_oversee(user: Person, task: Task) -> bool:
    """Return whether the person may see rounds, contexts and counts, without labels."""
    return _has_permission(user, task, Permission.OVERSEE)


def can_manage(user: Person, task: Task) -> bool:
    """Return whether the person may see the targets and the members."""
    return _has_permission(user, task, Permission.REVIEW) or _has_permission(
        user, task, Permission.EDIT
    )


def can_read(user: Person, task: Task) -> bool:
    """Return whether the person may read data that is not public, including labels and votes."""
    return _has_permission(user, task, Permission.READ)


def can_review(user: Person, task: Task) -> bool:
    """Return whether the person may act on reports and examples."""
    return _has_permission(user, task, Permission.REVIEW)


def can_edit(user: Person, task: Task) -> bool:
    """Return whether the person may change configuration, rounds, contexts and targets."""
    return _has_permission(user, task, Permission.EDIT)


def can_own(user: Person, task: Task) -> bool:
    """Return whether the person may manage members, release, and delete the task."""
    return _has_permission(user, task, Permission.OWN)


def check_owner(user: Person, task: Task) -> None:
    """Raise Refused unless the person owns the task.

    This happens if they lost the role while an owner's page was open.
    """
    if not can_own(user, task):
        raise Refused(_("You no longer own this task."), code="members")


def is_task_creation_offered(user: Person) -> bool:
    """Return whether the site lets the person create tasks, after signing up if necessary."""
    return user.is_superuser or settings.NEW_TASKS != "nobody"


def can_make_tasks(user: Person) -> bool:
    """Return whether the person may create tasks of their own, initially private."""
    if user.is_superuser:
        return True
    if not (isinstance(user, User) and user.is_active):
        return False
    return settings.NEW_TASKS != "nobody" and has_confirmed_address(user)


def needs_approval(task: Task) -> bool:
    """Return whether administrators must approve the task before non-members see it."""
    return task.is_unapproved and settings.NEW_TASKS != "everybody"


def check_approval(task: Task, field: str = "") -> None:
    """Raise Refused if a task needs approval before non-members see it.

    field: the form field to which the error belongs.
    """
    if needs_approval(task):
        message = _("Before non-members can see this task, request approval on the Members page.")
        raise Refused(message, code="approval", field=field)


MAX_COLLEAGUES = 20
"""The maximum number of members and open invitations of a task without approval."""


def count_places_left(task: Task) -> int | None:
    """Return how many more people may become members before approval; None for any number.

    Makes two queries.
    """
    if not needs_approval(task):
        return None
    # An open invitation counts as the people who may still accept it.
    open_condition = Q(revoked_at=None, ends_at__gt=timezone.now(), uses__lt=F("most"))
    invited_count = (
        task.invitations.filter(open_condition).aggregate(n=Sum(F("most") - F("uses")))["n"] or 0
    )
    return max(0, MAX_COLLEAGUES - task.members.select_colleagues().count() - invited_count)


def check_member_limit(task: Task, new_count: int) -> None:
    """Raise Refused if a task without approval would exceed its limit on members.

    new_count: how many members are to be added.
    """
    places_left = count_places_left(task)
    if places_left is not None and new_count > places_left:
        message = _(
            "Until it's approved, a task can have at most %(most)d members and open invitations."
        )
        raise Refused(message % {"most": MAX_COLLEAGUES}, code="approval")


def list_fixed_settings(user: Person, target: TargetModel | Generator | None) -> list[str]:
    """Return the names of a target's settings that the person may not set.

    Only an administrator may combine a secret with a URL. Otherwise an editor could send
    another task's secret to a URL of their own. target: None for a new one.
    """
    # A name stays because it is a part of addresses and exports.
    fixed_settings = []
    if target:
        fixed_settings = ["task", "name"]
    if not user.is_superuser:
        fixed_settings.append("secret_env")
        if target and target.secret_env:
            fixed_settings += ["adapter", "url", "options"]
    return fixed_settings
