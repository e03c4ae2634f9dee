"""Create and delete people's own tasks."""

from django.conf import settings
from django.db import transaction
from django.db.models import ProtectedError, Q, QuerySet
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.services import log
from core.errors import Refused
from core.files.decoding import DecodedMedia
from tasks.contexts.media.services import delete_media, store_decoded
from tasks.contexts.scenes.contexts import draw_examples
from tasks.making.templates import Source, get_source_text, load_templates, rename_config
from tasks.models import SIMULATED_TASK_CODE, Round, RoundTarget, Task, TaskMember, TaskProposal
from tasks.permissions import can_edit, can_make_tasks, can_own
from tasks.questions import build_contestants_condition, find_deletion_problem
from tasks.rounds.services import plan_round
from tasks.selectors import PLANNED_STATES
from tasks.services import (
    close_approval_request,
    create_task_without_files,
    keep_example_media,
    list_example_digests,
)


def find_unopened_tasks() -> QuerySet[Task]:
    """Return the tasks in which nobody can have written.

    They have no round that was ever opened and, if they are arenas, no models.
    """
    # Every state but draft and ready has been open once.
    opened_rounds = Round.objects.exclude(state__in=PLANNED_STATES)
    return Task.objects.exclude(build_contestants_condition()).exclude(rounds__in=opened_rounds)


def find_source(kind: str, code: str, creator: User) -> Source | None:
    """Return the source of a new task: a template, or a task that the person may edit.

    Returns None if there is no such source. kind: a TaskProposal.Kind. code: the source's code.
    """
    if kind != TaskProposal.Kind.TASK:
        return load_templates().get(code)
    task = Task.objects.filter(code=code).first()
    if task and can_edit(creator, task):
        return task
    return None


def make_task(*, creator: User, code: str, name: str, source: Source) -> Task:
    """Create a private task from a template or as a copy of another task.

    For locks and errors, see `make_own_task`.
    """
    text = rename_config(get_source_text(source), name)
    return make_own_task(creator=creator, code=code, text=text, source=source)[0]


@transaction.atomic
def make_own_task(
    *,
    creator: User,
    code: str,
    text: str,
    source: Source | None = None,
    is_visible: bool = False,
    allow_try_out: bool = True,
    is_approved: bool = False,
    is_counted: bool = True,
) -> tuple[Task, list[str]]:
    """Create a task with its creator as owner, and plan its first round.

    Returns the task and notes on its configuration. source: the template or task from which to copy
    the pictures and recordings of the examples. is_approved: whether an administrator has allowed
    this task. If new tasks need approval, only members see the task until then. is_counted: False
    for a further task of a study, whose first task was within the limit on unopened tasks. Locks
    the creator, so that parallel requests cannot exceed it. Raises ConfigError, Refused.
    """
    # 1. Lock the creator, and check what they may begin.
    locked_creator = User.objects.select_for_update(of=("self",), no_key=True).get(pk=creator.pk)
    if not is_approved:
        _check_can_make_tasks(locked_creator, is_counted=is_counted)
    if not locked_creator.is_superuser:
        check_code(code)
    # 2. Decide who sees the task.
    needs_approval = settings.NEW_TASKS == "approval" and not (
        is_approved or locked_creator.is_superuser
    )
    if needs_approval and is_visible:
        message = _("A new task stays private until an administrator approves it.")
        raise Refused(message, code="approval", field="is_visible")
    fields = {"is_visible": is_visible, "allow_try_out": allow_try_out, "made_by": creator}
    fields["is_unapproved"] = needs_approval
    # 3. Create it.
    task, notes = create_task_without_files(code=code, config_text=text, actor=creator, **fields)
    # 4. Store the files of its examples before the check that they are there.
    _copy_files(source, task)
    keep_example_media(task, task.config)
    # 5. Make the creator its owner, and plan the first round.
    TaskMember.objects.create(task=task, user=creator, role=TaskMember.Role.OWNER)
    if task.config.kind != "arena":
        plan_round(task=task, actor=creator, fields={})
    return task, notes


def check_code(code: str) -> None:
    """Raise Refused if the code is reserved or taken."""
    # A person's task must not be taken for an official or a simulated one.
    if code == SIMULATED_TASK_CODE or code in load_templates():
        raise Refused(_("This URL name is reserved. Choose another."), field="code")
    if Task.objects.filter(code=code).exists():
        message = _("The URL name %(code)s is already taken. Choose another.") % {"code": code}
        raise Refused(message, code="exists", field="code")


def _check_can_make_tasks(creator: User, *, is_counted: bool) -> None:
    if not can_make_tasks(creator):
        message = _(
            "You can't create tasks yet. Confirm your email address, or ask an administrator."
        )
        raise Refused(message, code="new_tasks", status=403)
    # The limit on unopened tasks does not apply to administrators.
    if creator.is_superuser or not is_counted:
        return
    if _find_counted_tasks(creator).count() >= settings.NEW_TASKS_AT_ONCE:
        message = _(
            "You already have %(number)d tasks that haven't been approved or opened. "
            "Open or delete one first."
        )
        raise Refused(message % {"number": settings.NEW_TASKS_AT_ONCE}, code="quota")


def _find_counted_tasks(creator: User) -> QuerySet[Task]:
    """Return the creator's tasks that count towards the limit.

    These are tasks without an opened round, and tasks awaiting approval.
    """
    # Where everybody may create tasks, only tasks without an opened round count.
    counted_condition = Q(pk__in=find_unopened_tasks().values("pk"))
    if settings.NEW_TASKS != "everybody":
        counted_condition |= Q(is_unapproved=True)
    return Task.objects.filter(counted_condition, made_by=creator)


def _copy_files(source: Source | None, task: Task) -> None:
    """Copy the pictures and recordings of the examples from the source to the task."""
    if isinstance(source, Task):
        for media in source.media.filter(digest__in=list_example_digests(task.config)):
            with media.file.open() as file:
                decoded_file = DecodedMedia(file.read(), media.mime, media.about)
            store_decoded(task=task, decoded_file=decoded_file)
    elif source and source.scenes:
        task.config_text = draw_examples(source.scenes, task)
        task.save(update_fields=["config_text"])


@transaction.atomic
def delete_unopened_task(*, task: Task, actor: User) -> None:
    """Delete a task in which nobody can have written, with everything that was prepared in it.

    Locks its request for approval, then the task, as planning a round does. Raises Refused.
    """
    # Its request first, since a decision locks request and task in this order.
    close_approval_request(task, actor, TaskProposal.State.WITHDRAWN)
    locked_task = Task.objects.select_for_update(of=("self",), no_key=True).get(pk=task.pk)
    message = _("You can delete only your own tasks, and only before their first round opens.")
    if not (can_own(actor, locked_task) and find_unopened_tasks().filter(pk=task.pk).exists()):
        raise Refused(message, code="begun")
    if problem := find_deletion_problem(locked_task):
        raise Refused(problem, code="used")
    log(actor, "task.deleted", locked_task, name=locked_task.name)
    # The targets of planned rounds protect the targets of the task, which go with it.
    RoundTarget.objects.filter(round__task=locked_task).delete()
    delete_media(locked_task.media.all())
    try:
        # In a savepoint, so that the refusal below can still be answered from the database.
        with transaction.atomic():
            locked_task.delete()
    except ProtectedError:  # a snapshot of its board, say
        raise Refused(message, code="begun") from None
