"""Store tasks, their configuration and their members."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from core.accounts.models import PANEL_ADDRESS_ENDING, User
from core.accounts.services import log
from core.data.rows import save_changed_fields
from core.errors import Invalid, Refused
from core.text.taken_names import check_name, check_name_is_free, lock_names
from core.web.throttles import is_used_up
from tasks.config.schema import TaskConfig
from tasks.config_changes import MAX_DIFF_CHARS, build_diff, check_new_config, parse_or_convert
from tasks.contexts.media.services import keep_media, list_digests
from tasks.contexts.scenes.contexts import draw_contexts, draw_examples
from tasks.contexts.services import store_contexts
from tasks.members.assignments.services import end_disallowed_assignments
from tasks.members.ended_roles import notify_lost_read_access
from tasks.models import Round, Task, TaskMember, TaskProposal
from tasks.permissions import Person, check_approval, check_member_limit, check_owner
from tasks.questions import is_rehearsed
from tasks.rounds.states import set_round_state

OFFICIAL_FOLDER = Path(__file__).parent / "official"
CONTEXTS_FILE, SCENES_FILE = "contexts.jsonl", "scenes.json"


def install_official_tasks() -> list[Task]:
    """Create the missing official tasks, each with a ready first round and its contexts.

    Returns the new tasks. Existing ones are not changed. Uses one transaction per task.
    """
    installed_tasks = []
    for folder in sorted(OFFICIAL_FOLDER.iterdir()):
        # Only a folder with a configuration is a task.
        is_task = (folder / "task.yaml").exists()
        if is_task and not Task.objects.filter(code=folder.name).exists():
            installed_tasks.append(_install_task(folder))
    return installed_tasks


@transaction.atomic
def _install_task(folder: Path) -> Task:
    text = (folder / "task.yaml").read_text()
    task = create_task_without_files(
        code=folder.name, config_text=text, actor=None, is_official=True
    )[0]
    first_round = Round.objects.create(task=task, number=1)
    # A task has either texts or drawn scenes.
    file = next(folder / name for name in (CONTEXTS_FILE, SCENES_FILE) if (folder / name).exists())
    store_contexts(round=first_round, rows=_read_contexts(file, task), file_name=file.name)
    if file.name == SCENES_FILE:
        task.config_text = draw_examples(file, task)
        task.save(update_fields=["config_text"])
    keep_example_media(task, task.config)
    set_round_state(round=first_round, state=Round.State.READY, actor=None)
    return task


def _read_contexts(file: Path, task: Task) -> Iterable[Mapping[str, Any]]:
    """Return the contexts in a file, or the contexts drawn from its scenes."""
    if file.name == SCENES_FILE:
        return draw_contexts(file, task)
    return map(json.loads, file.read_bytes().splitlines())


@transaction.atomic
def create_task(
    *, code: str, config_text: str, actor: User | None, **fields: Any
) -> tuple[Task, list[str]]:
    """Create a task; return it with notes on its configuration. Takes no lock: codes are unique.

    A configuration of Dynabench 1.0 or 2.0 is converted. Raises ConfigError, Refused, Invalid.
    """
    task, notes = create_task_without_files(
        code=code, config_text=config_text, actor=actor, **fields
    )
    keep_example_media(task, task.config)
    return task, notes


def create_task_without_files(
    *, code: str, config_text: str, actor: User | None, **fields: Any
) -> tuple[Task, list[str]]:
    """Create a task like `create_task`, but without requiring the files of its examples."""
    # 1. Check the text, and convert it where it is one of Dynabench.
    config, text, notes = parse_or_convert(config_text)
    # 2. Check the name, and that no visible task looks like it.
    name = check_name(config.name, "config_text")
    if actor and fields.get("is_visible"):
        check_task_name(name, "config_text")
    # 3. Store the task, with what pages list beside its text.
    values = {"config_text": text, "name": name, "summary": config.summary, **fields}
    # The unique code decides between two people who create a task of one code: no lock is needed,
    # and the second one is refused below.
    task, is_created = Task.objects.get_or_create(code=code, defaults=values)
    if not is_created:
        raise Refused(
            _("The URL name %(code)s is already taken. Choose another.") % {"code": code},
            code="exists",
            field="code",
        )
    # 4. Log it with its text, cut, so that the log stays readable.
    log(
        actor,
        "task.created",
        task,
        fields=sorted(fields),
        diff=build_diff("", text)[:MAX_DIFF_CHARS],
    )
    return task, notes


def list_example_digests(config: TaskConfig) -> set[str]:
    """Return the digests of the pictures and recordings in a configuration's examples."""
    # Bad examples are shown on the task's page, too, so their files must also stay.
    digests: set[str] = set()
    for example in config.examples.good + config.examples.bad:
        digests |= list_digests(example.context.values())
        digests |= list_digests(example.input.values())
    return digests


def keep_example_media(task: Task, config: TaskConfig) -> None:
    """Mark the pictures and recordings of a configuration's examples as used. Raises Invalid."""
    try:
        keep_media(task=task, digests=list_example_digests(config), is_used=True)
    except Invalid:
        message = _("A picture or recording in the examples isn't stored in this task. Upload it.")
        raise Invalid(message, field="config_text") from None


def create_imported_task(code: str, config_text: str, get_owner: Callable[[], User | None]) -> Task:
    """Create a hidden task for imported data. Takes no lock: codes are unique.

    get_owner: called once the task is known to be valid; returns its owner or None. Raises Refused.
    """
    task = Task(code=code, name=derive_title(code), config_text=config_text, is_visible=False)
    try:
        task.full_clean()
    except ValidationError as error:
        raise Refused(f"{code!r} cannot be a task: {' '.join(error.messages)}") from None
    user = get_owner()
    # An insert and never an update: a task that somebody else just created with this code is
    # an error here, and not overwritten.
    task.save(force_insert=True)
    if user:
        TaskMember.objects.create(task=task, user=user, role=TaskMember.Role.OWNER)
    log(None, "task.created", task, user=user.email if user else "")
    return task


def check_task_name(name: str, field: str, task: Task | None = None) -> None:
    """Raise Invalid if another visible task has this name or one that looks the same.

    field: the form field to which the error belongs. Locks the names of tasks until the transaction
    ends.
    """
    # Names are compared by how they look, which no database constraint can do. So everybody who
    # makes a name visible takes this one lock, and looks at the names that are there.
    lock_names("tasks")
    other_tasks = Task.objects.filter(is_visible=True)
    if task and task.pk:
        other_tasks = other_tasks.exclude(pk=task.pk)
    check_name_is_free(name, other_tasks.values_list("name", flat=True), field)


def derive_title(code: str) -> str:
    """Return a default name derived from a task's code."""
    return code.replace("-", " ").capitalize()


@transaction.atomic
def change_task(*, task: Task, actor: User, fields: Mapping[str, bool]) -> None:
    """Show or hide a task, and allow or forbid trying it out. The last change wins.

    If an administrator shows a task that awaits approval, the request is approved. Locks the
    request for approval, the task, then the names of tasks if it becomes visible. Raises Refused if
    the task needs approval or is a pilot's, Invalid if its name resembles another task's.
    """
    is_made_visible = bool(fields.get("is_visible")) and not task.is_visible
    if is_made_visible:
        if is_rehearsed(task):
            message = _("Only simulated people work in this task, so it stays private.")
            raise Refused(message, code="pilot", field="is_visible")
        state = TaskProposal.State.WITHDRAWN
        if actor.is_superuser:
            state = TaskProposal.State.APPROVED
        close_approval_request(task, actor, state)
    locked_task = Task.objects.select_for_update(of=("self",), no_key=True).get(pk=task.pk)
    if is_made_visible:
        if not actor.is_superuser:
            check_approval(locked_task, "is_visible")
        check_task_name(task.name, "is_visible", task)
        fields = {**fields, "is_unapproved": False}
    log(actor, "task.changed", task, fields=save_changed_fields(task, fields))


def close_approval_request(task: Task, actor: User, state: str) -> None:
    """Close a request for approval that no longer needs a decision, with one update. No lock.

    state: the state to set.
    """
    # The condition is part of the update: of an administrator who decides and an owner who shows
    # the task, the first one wins, and the other one's update hits no row.
    pending_requests = TaskProposal.objects.filter(task=task, state=TaskProposal.State.WAITING)
    pending_requests.update(state=state, decided_by=actor, decided_at=timezone.now())


@transaction.atomic
def save_config(*, task: Task, text: str, base: str, actor: User) -> Task:
    """Check and store a configuration; return the task. base: the hash of the text that was edited.

    Locks the task, so that only one of two editors succeeds, then the names of tasks if the name
    changes. Raises StaleConfig, ConfigError, Invalid.
    """
    locked_task = Task.objects.select_for_update(of=("self",), no_key=True).get(pk=task.pk)
    # Checked under the lock, against the text that is stored now: another editor may have saved
    # since the page was opened.
    config = check_new_config(locked_task, text, base=base)[0]
    keep_example_media(locked_task, config)
    if config.name != locked_task.name:
        locked_task.name = check_name(config.name, "config_text")
        if locked_task.is_visible:
            check_task_name(locked_task.name, "config_text", locked_task)
    # Before the new text takes the place of the old one.
    changes = build_diff(locked_task.config_text, text)[:MAX_DIFF_CHARS]
    _store_version(locked_task, text, actor)
    locked_task.summary = config.summary
    locked_task.save(update_fields=["config_text", "config_number", "name", "summary"])
    log(actor, "task.changed", locked_task, fields=["config_text"], diff=changes)
    return locked_task


def _store_version(locked_task: Task, text: str, actor: User) -> None:
    """Set a locked task's configuration text, and store the old and new text as versions."""
    versions, former_text = locked_task.config_versions, locked_task.config_text
    former_values = {
        "text": former_text,
        "actor": locked_task.made_by,
        "created_at": locked_task.created_at,
    }
    # The first version gets a row only once a second one exists, so most tasks have none.
    versions.get_or_create(number=locked_task.config_number, defaults=former_values)
    locked_task.config_text, locked_task.config_number = text, locked_task.config_number + 1
    versions.create(number=locked_task.config_number, text=text, actor=actor)


def find_account(email: str) -> User:
    """Return the active account with this address. Raises Invalid if there is none.

    Accounts of panel participants are not found.
    """
    accounts = User.objects.exclude(email__endswith=PANEL_ADDRESS_ENDING)
    user = accounts.filter(email__iexact=email, is_active=True).first()
    if user is None:
        raise Invalid(_("No account has this address. Ask the person to sign up."), field="email")
    return user


def find_account_within_limit(person: Person, email: str) -> User:
    """Return the active account with this address, within a limit of look-ups per hour.

    The limit exists because the result reveals who has an account. person: the person who looks
    up the address. Raises Refused above the limit, Invalid if there is no such account.
    """
    # Otherwise anybody who owns a task could test a list of addresses for accounts.
    if is_used_up("members", person.pk):
        raise Refused(_("You've added many people in the last hour. Try again later."), code="rate")
    return find_account(email)


def check_members(members: Sequence[TaskMember], person: Person | None) -> None:
    """Raise Refused if this cannot be the complete list of a task's members.

    Nobody may be listed twice, and there must be an owner, unless `person` is an administrator or
    None.
    """
    if len({member.user_id for member in members}) < len(members):
        raise Refused(_("A person is listed twice. Give them one role."), code="members")
    roles = {member.role for member in members}
    if person and not person.is_superuser and TaskMember.Role.OWNER not in roles:
        raise Refused(_("A task needs an owner. Appoint another one first."), code="members")


@transaction.atomic
def change_members(
    *,
    task: Task,
    actor: User | None,
    added_members: Sequence[TaskMember] = (),
    changed_members: Sequence[TaskMember] = (),
    removed_members: Sequence[TaskMember] = (),
) -> None:
    """Add members, change roles and remove members, all or nothing.

    actor: an owner; None for the site itself. A new member's role counts once they have confirmed
    their address. Assignments that a role no longer allows are ended. Locks the task, so that two
    owners cannot remove each other. Raises Refused.
    """
    locked_task = Task.objects.select_for_update(of=("self",), no_key=True).get(pk=task.pk)
    if actor:
        check_owner(actor, locked_task)
        if added_members and not actor.is_superuser:
            check_member_limit(locked_task, len(added_members))
    # Read under the lock: the page that the owner sent may be older than the members.
    members_by_pk = {member.pk: member for member in task.members.select_colleagues()}
    if not members_by_pk.keys() >= {
        member.pk for member in chain(changed_members, removed_members)
    }:
        raise Refused(
            _("Someone else has removed a member. Check the members again."), code="members"
        )
    # What the task would have: it is checked as a whole, since an owner may leave when another one
    # is named in the same form.
    remaining_members = members_by_pk | {member.pk: member for member in changed_members}
    for member in removed_members:
        del remaining_members[member.pk]
    check_members(list(remaining_members.values()) + list(added_members), actor)
    # Before the rows change, since later stages look up who could read the labels until now.
    _notify_lost_read_access(locked_task, members_by_pk, changed_members, removed_members)
    task.members.filter(pk__in=[member.pk for member in removed_members]).delete()
    for member in changed_members:  # in another role they read what they may not have seen
        member.is_blind = False
    # One query for all members that changed.
    TaskMember.objects.bulk_update(changed_members, ["role", "is_blind"])
    changes = {member.user_id: member.role for member in changed_members}
    end_disallowed_assignments(
        task=locked_task, roles=changes | {member.user_id: None for member in removed_members}
    )
    for member in added_members:
        member.address = member.user.email
    TaskMember.objects.bulk_create(added_members)
    # Asked of the database after the writes: a role counts only once its address is confirmed,
    # which the objects in memory do not tell.
    owners = task.members.select_effective().filter(role=TaskMember.Role.OWNER)
    if actor and not (actor.is_superuser or owners.exists()):
        raise Refused(_("A task needs an owner with a confirmed email address."), code="members")
    # One entry for each member, so that the log of a person names every change of their role.
    for action, members in {
        "added": added_members,
        "changed": changed_members,
        "removed": removed_members,
    }.items():
        for member in members:
            log_values = {"user": member.user.email, "person": member.user_id, "role": member.role}
            log(actor, f"member.{action}", task, **log_values)


def _notify_lost_read_access(
    task: Task,
    members_by_pk: Mapping[int, TaskMember],
    changed_members: Sequence[TaskMember],
    removed_members: Sequence[TaskMember],
) -> None:
    """Notify later rooms of people whose changed or removed role no longer lets them read labels.

    members_by_pk: the members before the change.
    """
    roles: dict[int, str] = {member.pk: member.role for member in changed_members}
    role_changes = {}
    for member in chain(changed_members, removed_members):
        role_changes[member.user] = (members_by_pk[member.pk].role, roles.get(member.pk))
    notify_lost_read_access(task, role_changes)


def set_role(*, task: Task, user: User, role: str | None) -> None:
    """Set or remove a person's role on behalf of the site. For locks, see `change_members`."""
    member = TaskMember.objects.filter(task=task, user=user).first()
    if member is None and role:
        change_members(
            task=task, actor=None, added_members=[TaskMember(task=task, user=user, role=role)]
        )
    elif member and role is None:
        change_members(task=task, actor=None, removed_members=[member])
    elif member and member.role != role:
        member.role = str(role)
        change_members(task=task, actor=None, changed_members=[member])
