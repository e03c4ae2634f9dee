"""Who may do what with a task: one function for each question."""

from django.conf import settings
from django.contrib.auth.models import AnonymousUser

from dynabench.accounts.models import User
from dynabench.accounts.people import has_confirmed_address
from tasks.models import Generator, TargetModel, Task, TaskMember

Person = User | AnonymousUser
Role = TaskMember.Role
READERS = frozenset(Role) - {Role.ANNOTATOR}


def role_of(user: Person, task: Task) -> str | None:
    """The user's role in the task; None for everybody else, and while the role waits.

    It is asked once for each `task` object, which lives no longer than a request.
    """
    if not user.is_authenticated:
        return None
    if user.pk not in task.roles:
        members = TaskMember.objects.standing().filter(task=task, user=user)
        task.roles[user.pk] = members.values_list("role", flat=True).first()
    return task.roles[user.pk]


def can_see(user: Person, task: Task) -> bool:
    """Whether the task's page exists for this person."""
    return task.is_visible or user.is_superuser or role_of(user, task) is not None


def can_annotate(user: Person, task: Task) -> bool:
    """Whether the person may write examples that are kept."""
    return user.is_authenticated and user.is_active and can_see(user, task)


def can_try_out(user: Person, task: Task) -> bool:
    """Whether the person may try the model without anything being kept."""
    return task.allow_try_out and can_see(user, task)


def can_edit(user: Person, task: Task) -> bool:
    """Whether the person may change configuration, rounds, contexts and targets."""
    return user.is_superuser or role_of(user, task) in (Role.OWNER, Role.EDITOR)


def can_own(user: Person, task: Task) -> bool:
    """Whether the person may name members and delete."""
    return user.is_superuser or role_of(user, task) == Role.OWNER


def can_moderate(user: Person, task: Task) -> bool:
    """Whether the person may act on reports and examples."""
    return user.is_superuser or role_of(user, task) in (Role.OWNER, Role.EDITOR, Role.MODERATOR)


def can_read(user: Person, task: Task) -> bool:
    """Whether the person may read what is not public, labels and votes among it."""
    return user.is_superuser or role_of(user, task) in READERS


def can_judge(user: Person, task: Task) -> bool:
    """Whether the person may judge what others wrote: nobody who may read the labels is blind."""
    return can_annotate(user, task) and not can_read(user, task)


def is_offered_new_tasks(user: Person) -> bool:
    """Whether the site tells the person of new tasks; strangers sign up on the way."""
    return user.is_superuser or settings.NEW_TASKS != "nobody"


def can_make_tasks(user: Person) -> bool:
    """Whether the person may make tasks that are theirs."""
    if user.is_superuser:
        return True
    if not (isinstance(user, User) and user.is_active):
        return False
    return settings.NEW_TASKS == "everybody" and has_confirmed_address(user)


def can_propose_tasks(user: Person) -> bool:
    """Whether the person may propose tasks, which administrators decide."""
    if not (isinstance(user, User) and user.is_active) or user.is_superuser:
        return False
    return settings.NEW_TASKS == "approval" and has_confirmed_address(user)


def fixed_settings(user: Person, target: TargetModel | Generator | None) -> list[str]:
    """What of a target's settings the person may not set; target: None while it is new.

    Only an administrator ties a secret to an address. Otherwise an editor could send another task's
    secret to an address of their own.
    """
    fixed = ["task", "name"] if target else []
    if not user.is_superuser:
        fixed.append("secret_env")
        fixed += ["adapter", "url", "options"] if target and target.secret_env else []
    return fixed
