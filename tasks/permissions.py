"""Who may do what with a task: one function for each question, answered by `tasks.roles`."""

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
from tasks.roles import (
    ADMINISTRATOR,
    BLIND_OWNER,
    IDLE_READER,
    PERSON,
    VISITOR,
    May,
    find_roles_with,
    get_participant_permissions,
    get_permissions,
)

Person = User | AnonymousUser
JUDGES = find_roles_with(May.JUDGE)
READERS = find_roles_with(May.READ)
REVIEWERS = find_roles_with(May.REVIEW)
EDITORS = find_roles_with(May.EDIT)
OWNERS = find_roles_with(May.OWN)
MEMBERSHIP_FIELDS = ("pk", "role", "address", "is_blind")
"""What is known of a membership by `load_with_roles`."""
MEMBER_QUERY = PreparedRead(lambda: TaskMember.objects.filter(task=Slot("task"), user=Slot("user")))


def role_of(user: Person, task: Task) -> str | None:
    """Return the user's role in the task; None without a role or while it does not count.

    The role is queried once per `task` object, which lives no longer than a request.
    """
    if not user.is_authenticated:
        return None
    # Cached on the object: a page asks for the role in many places, and costs one query.
    if user.pk not in task.roles:
        _cache_roles(user, [task], MEMBER_QUERY.rows(task=task.pk, user=user.pk))
    return task.roles[user.pk]


def look_up_roles(user: Person, tasks: Collection[Task]) -> None:
    """Cache the user's roles in many tasks at once, for `role_of`.

    One query, and a second one if a role was given to an address.
    """
    if not user.is_authenticated:
        return
    _cache_roles(user, tasks, TaskMember.objects.filter(task__in=tasks, user=user))


def load_with_roles(tasks: QuerySet[Task], user: Person) -> list[Task]:
    """Return the tasks with the user's roles cached for `role_of`.

    One query, and a second one if a role was given to an address.
    """
    if not user.is_authenticated:
        return list(tasks)
    # A join to this user's membership only. Joining all members would repeat the tasks.
    own = FilteredRelation("members", condition=Q(members__user=user))
    columns = {f"own_{name}": F(f"own__{name}") for name in MEMBERSHIP_FIELDS}
    tasks_with_roles: list[Task] = list(tasks.annotate(own=own, **columns))
    members = []
    for task in tasks_with_roles:
        # The annotations are no attributes that the model declares, so they are read as such.
        if vars(task)["own_pk"]:
            membership = {name: vars(task)[f"own_{name}"] for name in MEMBERSHIP_FIELDS}
            members.append(TaskMember(task=task, user=user, **membership))
    _cache_roles(user, tasks_with_roles, members)
    return tasks_with_roles


def _cache_roles(user: User, tasks: Collection[Task], members: Iterable[TaskMember]) -> None:
    """Cache the user's roles on the tasks. One query if a role was given to an address."""
    members_by_task = {member.task_id: member for member in members}
    waiting_pks = [member.pk for member in members_by_task.values() if member.address]
    # A role that was given to an address counts once its person has confirmed it. That takes one
    # more query, which makers of tasks and people who accepted an invitation do not need.
    standing_pks: set[int] = set()
    if waiting_pks:
        members = TaskMember.objects.standing().filter(pk__in=waiting_pks)
        standing_pks.update(members.values_list("pk", flat=True))
    for task in tasks:
        member = members_by_task.get(task.pk)
        # Three things are kept apart: the role that counts, the one of a reader whose address is
        # not confirmed, and an owner who judges blindly for the time being.
        is_standing = member is not None and (not member.address or member.pk in standing_pks)
        task.roles[user.pk] = member.role if member and is_standing else None
        if member and member.role in READERS and not is_standing:
            task.idle_readers.add(user.pk)
        if member and member.role in OWNERS and is_standing and member.is_blind:
            task.blind_owners.add(user.pk)


def _has_permission(user: Person, task: Task, permission: May) -> bool:
    """Return whether the person may do this. No query for what everybody may do."""
    # The order matters: suspended people are visitors whatever they were, then come administrators
    # and people of a panel, and only then what everybody may without a query.
    if not user.is_active:
        role = VISITOR
    elif user.is_superuser:
        role = ADMINISTRATOR
    elif isinstance(user, User) and user.is_of_panel:
        return permission in get_participant_permissions(role_of(user, task))
    elif permission in get_permissions(VISITOR, is_visible=task.is_visible):
        return True
    else:
        # Whoever drops the address that a role was given to may have read the labels before.
        role = role_of(user, task) or (IDLE_READER if user.pk in task.idle_readers else PERSON)
        if user.pk in task.blind_owners:
            role = BLIND_OWNER
    return permission in get_permissions(role, is_visible=task.is_visible)


def can_see(user: Person, task: Task) -> bool:
    """Return whether the task's page exists for this person."""
    return _has_permission(user, task, May.SEE)


def can_try_out(user: Person, task: Task) -> bool:
    """Return whether the person may try the model without storing anything."""
    return task.allow_try_out and _has_permission(user, task, May.TRY)


def can_take(user: Person, task: Task) -> bool:
    """Return whether the person may download what leaves the task, such as released files."""
    return _has_permission(user, task, May.TAKE)


def can_submit(user: Person, task: Task) -> bool:
    """Return whether the person may submit models."""
    return _has_permission(user, task, May.SUBMIT)


def can_write(user: Person, task: Task) -> bool:
    """Return whether the person may write examples that are stored."""
    return _has_permission(user, task, May.WRITE)


def can_judge(user: Person, task: Task) -> bool:
    """Return whether the person may judge others' examples.

    People who can read labels may not, because they would not judge blind.
    """
    return _has_permission(user, task, May.JUDGE)


def can_enter_judging(user: Person, task: Task) -> bool:
    """Return whether the person may open the judging page.

    Readers of labels may, and learn there why they cannot judge.
    """
    return _has_permission(user, task, May.JUDGE) or _has_permission(user, task, May.READ)


def is_blind_owner(user: Person, task: Task) -> bool:
    """Return whether the person owns the task and judges it blind now."""
    is_member = not user.is_superuser and role_of(user, task) is not None
    return is_member and user.pk in task.blind_owners


def may_be_blind(user: Person, task: Task) -> bool:
    """Return whether the person may judge as an owner: a member who owns it, no administrator."""
    return not user.is_superuser and role_of(user, task) in OWNERS


def can_oversee(user: Person, task: Task) -> bool:
    """Return whether the person may see rounds, contexts and counts, without labels."""
    return _has_permission(user, task, May.OVERSEE)


def can_manage(user: Person, task: Task) -> bool:
    """Return whether the person may see the targets and the members."""
    return _has_permission(user, task, May.REVIEW) or _has_permission(user, task, May.EDIT)


def can_read(user: Person, task: Task) -> bool:
    """Return whether the person may read what is not public, including labels and votes."""
    return _has_permission(user, task, May.READ)


def can_review(user: Person, task: Task) -> bool:
    """Return whether the person may act on reports and examples."""
    return _has_permission(user, task, May.REVIEW)


def can_edit(user: Person, task: Task) -> bool:
    """Return whether the person may change configuration, rounds, contexts and targets."""
    return _has_permission(user, task, May.EDIT)


def can_own(user: Person, task: Task) -> bool:
    """Return whether the person may manage members, release, and delete the task."""
    return _has_permission(user, task, May.OWN)


def check_owner(user: Person, task: Task) -> None:
    """Raise Refused for a person who no longer owns the task but still sees an owner's page."""
    if not can_own(user, task):
        raise Refused(_("You do not own this task any more."), code="members")


def is_offered_new_tasks(user: Person) -> bool:
    """Return whether the site offers the person to create tasks. Visitors sign up first."""
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


def check_approved(task: Task, field: str = "") -> None:
    """Raise Refused for a task that needs approval before non-members see it.

    field: the form field to which the error belongs.
    """
    if needs_approval(task):
        message = _("Ask for approval on the Access page before others than members see this task.")
        raise Refused(message, code="approval", field=field)


MAX_COLLEAGUES = 20
"""Members of a task that is not approved, with the places of its open invitations."""


def count_places_left(task: Task) -> int | None:
    """Return how many more people may become members before approval; None for any number.

    Two queries.
    """
    if not needs_approval(task):
        return None
    # An open invitation counts as the people who may still accept it.
    is_open = Q(revoked_at=None, ends_at__gt=timezone.now(), uses__lt=F("most"))
    places = task.invitations.filter(is_open).aggregate(n=Sum(F("most") - F("uses")))["n"] or 0
    return max(0, MAX_COLLEAGUES - task.members.colleagues().count() - places)


def check_colleagues(task: Task, new_count: int) -> None:
    """Raise Refused if a task without approval would exceed its limit on members.

    new_count: how many members are to be added.
    """
    left = count_places_left(task)
    if left is not None and new_count > left:
        message = _(
            "Until it is approved a task has at most %(most)d members and open invitations."
        )
        raise Refused(message % {"most": MAX_COLLEAGUES}, code="approval")


def list_fixed_settings(user: Person, target: TargetModel | Generator | None) -> list[str]:
    """Return the names of a target's settings that the person may not set.

    Only an administrator may combine a secret with an address. Otherwise an editor could send
    another task's secret to an address of their own. target: None for a new one.
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
