"""Writes: configurations that people put together step by step."""

from collections.abc import Callable

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.errors import Refused
from tasks.config_changes import STALE, ConfigStale, digest
from tasks.making.outline import Data, completed, data_of, put, text_of
from tasks.making.services import find_source, make_own_task
from tasks.making.templates import Source, kind_of, text_in
from tasks.models import Task, TaskDraft
from tasks.permissions import can_edit, can_make_tasks

EMPTY = "version: 1\n"


@transaction.atomic
def begin_draft(*, owner: User, source: Source | None, name: str = "", code: str = "") -> TaskDraft:
    """Begin a draft of a new task, from a source that the person may read, or from nothing.

    Locks the owner, so that many tabs do not exceed what a person may have begun. Raises Refused.
    """
    locked = User.objects.select_for_update(of=("self",), no_key=True).get(pk=owner.pk)
    if not can_make_tasks(locked):
        raise Refused(_("Confirm your e-mail address first."), code="new_tasks", status=403)
    # Counted under the lock. Drafts of changes to a task do not count: there is one for each task.
    if locked.task_drafts.filter(task=None).count() >= settings.NEW_TASKS_AT_ONCE:
        message = _("You have %(number)d drafts. Finish or delete one first.")
        raise Refused(message % {"number": settings.NEW_TASKS_AT_ONCE}, code="quota")
    data = data_of(EMPTY if source is None else text_in(source))
    if name:
        data["name"] = name
    about = {"kind": kind_of(source), "source": source.code if source else "", "code": code}
    return TaskDraft.objects.create(owner=locked, **_stored(data), **about)


def _stored(data: Data) -> dict[str, str]:
    """Return the columns of a draft. Raises ConfigError when it is too large to read again."""
    # Read back once: what is too large to parse would lock its owner out of the draft.
    text = text_of(data)
    data_of(text)
    return {"text": text, "name": str(data.get("name", ""))[:100]}


@transaction.atomic
def begin_change(*, task: Task, owner: User) -> TaskDraft:
    """Return the person's draft of the task's next configuration; create it if there is none.

    No lock, a unique draft. Raises Refused.
    """
    if not can_edit(owner, task):
        raise Refused(_("You may not change this task."), code="edit", status=403)
    begun = {**_stored(data_of(task.config_text)), "base": digest(task.config_text)}
    # The unique draft decides between two tabs that begin at once.
    return TaskDraft.objects.get_or_create(owner=owner, task=task, defaults=begun)[0]


@transaction.atomic
def change_draft(*, draft: TaskDraft, change: Callable[[Data], None]) -> TaskDraft:
    """Change a draft's data in place.

    Locks the draft, so that two tabs with two steps both keep what they wrote. Raises ConfigError,
    and what the change raises.
    """
    rows = TaskDraft.objects.select_related("task", "owner")
    locked = rows.select_for_update(of=("self",), no_key=True).get(pk=draft.pk)
    # From the locked row and not from the page: another tab may have changed another step.
    data = data_of(locked.text)
    change(data)
    return _keep(locked, data)


def _keep(draft: TaskDraft, data: Data) -> TaskDraft:
    stored = _stored(data)
    draft.text, draft.name = stored["text"], stored["name"]
    draft.save(update_fields=["text", "name", "changed_at"])
    return draft


def name_draft(*, draft: TaskDraft, name: str, code: str) -> TaskDraft:
    """Set the name and the code of a draft's future task, as `change_draft` does."""
    named = change_draft(draft=draft, change=lambda data: put(data, ("name",), name))
    named.code = code
    named.save(update_fields=["code"])
    return named


@transaction.atomic
def replace_draft(*, draft: TaskDraft, text: str, base: str) -> TaskDraft:
    """Give a draft another text, a configuration; base: the digest of the text that was edited.

    Locks the draft, so that what another tab wrote is not lost. Raises ConfigStale.
    """
    locked = TaskDraft.objects.select_for_update(no_key=True).get(pk=draft.pk)
    # The page showed the completed text, so that is what its digest is compared with.
    if digest(draft_text(locked)) != base:
        raise ConfigStale(_(STALE))
    return _keep(locked, data_of(text))


def forget_draft(draft: TaskDraft) -> None:
    """Delete a draft. No lock."""
    draft.delete()


def forget_drafts(*, task: Task, owner: User) -> None:
    """Delete the person's draft of a task's next configuration, which is stored now. No lock."""
    TaskDraft.objects.filter(task=task, owner=owner).delete()


def draft_text(draft: TaskDraft) -> str:
    """Return the configuration that a draft results in."""
    return text_of(completed(data_of(draft.text)))


@transaction.atomic
def finish_draft(*, draft: TaskDraft, code: str) -> Task:
    """Make the task of a draft, which its owner may, and delete the draft.

    As `make_own_task`. Raises ConfigError, Refused.
    """
    source = find_source(draft.kind, draft.source, draft.owner)
    about = {"maker": draft.owner, "code": code, "text": draft_text(draft), "source": source}
    task = make_own_task(**about)[0]  # type: ignore[arg-type]
    forget_draft(draft)
    return task
