"""Writes: tasks that people make for themselves."""

from django.conf import settings
from django.db import transaction
from django.db.models import ProtectedError, Q, QuerySet
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.accounts.services import log
from core.errors import Refused
from core.files.decoding import Decoded
from tasks.contexts.media.services import delete_media, store_decoded
from tasks.contexts.scenes.contexts import draw_examples
from tasks.making.templates import Source, get_source_text, load_templates, rename_config
from tasks.models import SIMULATED, Round, RoundTarget, Task, TaskMember, TaskProposal
from tasks.permissions import can_edit, can_make_tasks, can_own
from tasks.questions import have_contestants
from tasks.rounds.services import plan_round
from tasks.selectors import PLANNED_STATES
from tasks.services import (
    close_approval_request,
    keep_example_media,
    list_example_digests,
    new_task,
)


def find_unopened_tasks() -> QuerySet[Task]:
    """Return the tasks in which nobody can have written: no opened round, no arena with models."""
    # Every state but draft and ready has been open once.
    opened = Round.objects.exclude(state__in=PLANNED_STATES)
    return Task.objects.exclude(have_contestants()).exclude(rounds__in=opened)


def find_source(kind: str, code: str, maker: User) -> Source | None:
    """Return the source of a new task: a template, or a task that the person may edit.

    None if there is no such source.
    """
    if kind != TaskProposal.Kind.TASK:
        return load_templates().get(code)
    task = Task.objects.filter(code=code).first()
    if task and can_edit(maker, task):
        return task
    return None


def make_task(*, maker: User, code: str, name: str, source: Source) -> Task:
    """Create a private task from a template or as a copy of another task.

    Locks and raises as `make_own_task` does.
    """
    text = rename_config(get_source_text(source), name)
    return make_own_task(maker=maker, code=code, text=text, source=source)[0]


@transaction.atomic
def make_own_task(
    *,
    maker: User,
    code: str,
    text: str,
    source: Source | None = None,
    is_visible: bool = False,
    allow_try_out: bool = True,
    is_approved: bool = False,
) -> tuple[Task, list[str]]:
    """Create a task with its maker as owner, and plan its first round.

    Returns the task and notes on its configuration. source: where pictures and recordings of the
    examples come from. is_approved: an administrator allows this task. If new tasks need approval,
    only members see the task until then. Locks the maker, so that parallel requests cannot exceed
    the limit on unopened tasks. Raises ConfigError, Refused.
    """
    # 1. Lock the maker, and check what they may begin.
    locked_maker = User.objects.select_for_update(of=("self",), no_key=True).get(pk=maker.pk)
    if not is_approved:
        _check_may_make(locked_maker)
    if not locked_maker.is_superuser:
        check_code(code)
    # 2. Decide who sees the task.
    needs_approval = settings.NEW_TASKS == "approval" and not (
        is_approved or locked_maker.is_superuser
    )
    if needs_approval and is_visible:
        message = _("A new task is private until an administrator has approved it.")
        raise Refused(message, code="approval", field="is_visible")
    fields = {"is_visible": is_visible, "allow_try_out": allow_try_out, "made_by": maker}
    fields["is_unapproved"] = needs_approval
    # 3. Create it.
    task, notes = new_task(code=code, config_text=text, actor=maker, **fields)
    # 4. Store the files of its examples before the check that they are there.
    _copy_files(source, task)
    keep_example_media(task, task.config)
    # 5. Make the maker its owner, and plan the first round.
    TaskMember.objects.create(task=task, user=maker, role=TaskMember.Role.OWNER)
    if task.config.kind != "arena":
        plan_round(task=task, actor=maker, fields={})
    return task, notes


def check_code(code: str) -> None:
    """Raise Refused if the code is reserved or taken."""
    if code == SIMULATED or code in load_templates():
        raise Refused(_("This code is kept for the site. Take another one."), field="code")
    if Task.objects.filter(code=code).exists():
        message = _("There is a task %(code)s. Take another code.") % {"code": code}
        raise Refused(message, code="exists", field="code")


def _check_may_make(maker: User) -> None:
    if not can_make_tasks(maker):
        message = _(
            "You may not make tasks on this site. Confirm your e-mail address first, or ask."
        )
        raise Refused(message, code="new_tasks", status=403)
    if maker.is_superuser:
        return
    if _find_counted_tasks(maker).count() >= settings.NEW_TASKS_AT_ONCE:
        message = _(
            "You have %(number)d tasks without an opened round or an approval. Open or delete one "
            "first."
        )
        raise Refused(message % {"number": settings.NEW_TASKS_AT_ONCE}, code="quota")


def _find_counted_tasks(maker: User) -> QuerySet[Task]:
    """Return the maker's tasks that count: those without an opened round, or awaiting approval."""
    # Where everybody may create tasks, only tasks without an opened round count.
    counted_condition = Q(pk__in=find_unopened_tasks().values("pk"))
    if settings.NEW_TASKS != "everybody":
        counted_condition |= Q(is_unapproved=True)
    return Task.objects.filter(counted_condition, made_by=maker)


def _copy_files(source: Source | None, task: Task) -> None:
    """Copy the pictures and recordings of the examples from the source into the task."""
    if isinstance(source, Task):
        for media in source.media.filter(digest__in=list_example_digests(task.config)):
            with media.file.open() as file:
                decoded_file = Decoded(file.read(), media.mime, media.about)
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
    message = _("Only an owner deletes a task, and only before a round was opened.")
    if not (can_own(actor, locked_task) and find_unopened_tasks().filter(pk=task.pk).exists()):
        raise Refused(message, code="begun")
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
