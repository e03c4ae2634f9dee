"""Store drafts, the configurations that people put together step by step."""

from collections.abc import Callable

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from core.accounts.models import User
from core.errors import Refused
from tasks.config_changes import STALE_MESSAGE, StaleConfig, hash_text
from tasks.making.outline import Data, complete_data, format_data, parse_data, set_value
from tasks.making.services import find_source, make_own_task
from tasks.making.templates import Source, get_source_kind, get_source_text
from tasks.models import Task, TaskDraft
from tasks.permissions import can_edit, can_make_tasks

EMPTY_CONFIG = "version: 1\n"


@transaction.atomic
def begin_draft(*, owner: User, source: Source | None, name: str = "", code: str = "") -> TaskDraft:
    """Create a draft of a new task, from a source that the person may read or from scratch.

    Locks the owner, so that parallel requests cannot exceed the limit on drafts. Raises Refused,
    ConfigError.
    """
    locked_owner = User.objects.select_for_update(of=("self",), no_key=True).get(pk=owner.pk)
    if not can_make_tasks(locked_owner):
        raise Refused(_("Confirm your email address first."), code="new_tasks", status=403)
    # Counted under the lock. Drafts of changes to a task do not count: there is one for each task.
    if locked_owner.task_drafts.filter(task=None).count() >= settings.NEW_TASKS_AT_ONCE:
        message = _("You already have %(number)d drafts. Finish or delete one first.")
        raise Refused(message % {"number": settings.NEW_TASKS_AT_ONCE}, code="quota")
    data = parse_data(EMPTY_CONFIG if source is None else get_source_text(source))
    if name:
        data["name"] = name
    source_columns = {
        "kind": get_source_kind(source),
        "source": source.code if source else "",
        "code": code,
    }
    return TaskDraft.objects.create(owner=locked_owner, **_build_columns(data), **source_columns)


def _build_columns(data: Data) -> dict[str, str]:
    """Return the column values of a draft. Raises ConfigError if the text is too large to parse."""
    # Read back once: what is too large to parse would lock its owner out of the draft.
    text = format_data(data)
    parse_data(text)
    return {"text": text, "name": str(data.get("name", ""))[:100]}


@transaction.atomic
def begin_change(*, task: Task, owner: User) -> TaskDraft:
    """Return the person's draft of the task's next configuration, created if there is none.

    Takes no lock, because a unique constraint allows only one. Raises Refused.
    """
    if not can_edit(owner, task):
        raise Refused(_("You don't have permission to change this task."), code="edit", status=403)
    initial_columns = {
        **_build_columns(parse_data(task.config_text)),
        "base": hash_text(task.config_text),
    }
    # The unique draft decides between two tabs that begin at once.
    return TaskDraft.objects.get_or_create(owner=owner, task=task, defaults=initial_columns)[0]


@transaction.atomic
def change_draft(*, draft: TaskDraft, change: Callable[[Data], None]) -> TaskDraft:
    """Apply a change to a draft's data; return the draft.

    change: modifies the data in place. Locks the draft, so that tabs with different steps keep each
    other's changes. Raises ConfigError, and the errors of `change`.
    """
    rows = TaskDraft.objects.select_related("task", "owner")
    locked_draft = rows.select_for_update(of=("self",), no_key=True).get(pk=draft.pk)
    # From the locked row and not from the page: another tab may have changed another step.
    data = parse_data(locked_draft.text)
    change(data)
    return _store_data(locked_draft, data)


def _store_data(draft: TaskDraft, data: Data) -> TaskDraft:
    columns = _build_columns(data)
    draft.text, draft.name = columns["text"], columns["name"]
    draft.save(update_fields=["text", "name", "changed_at"])
    return draft


def rename_draft(*, draft: TaskDraft, name: str, code: str) -> TaskDraft:
    """Set the name and code of a draft's future task. For locks and errors, see `change_draft`."""
    renamed_draft = change_draft(draft=draft, change=lambda data: set_value(data, ("name",), name))
    renamed_draft.code = code
    renamed_draft.save(update_fields=["code"])
    return renamed_draft


@transaction.atomic
def replace_draft(*, draft: TaskDraft, text: str, base: str) -> TaskDraft:
    """Replace a draft's text and return the draft.

    Locks the draft, so that another tab's changes are not lost. base: the hash of the text that was
    edited. Raises StaleConfig, ConfigError.
    """
    locked_draft = TaskDraft.objects.select_for_update(no_key=True).get(pk=draft.pk)
    # The page showed the completed text, so that is what its digest is compared with.
    if hash_text(build_draft_text(locked_draft)) != base:
        raise StaleConfig(_(STALE_MESSAGE))
    return _store_data(locked_draft, parse_data(text))


def delete_draft(draft: TaskDraft) -> None:
    """Delete a draft. Takes no lock."""
    draft.delete()


def delete_drafts_of_task(*, task: Task, owner: User) -> None:
    """Delete the person's draft for a task whose configuration was saved. Takes no lock."""
    TaskDraft.objects.filter(task=task, owner=owner).delete()


def build_draft_text(draft: TaskDraft) -> str:
    """Return the completed configuration of a draft as text."""
    return format_data(complete_data(parse_data(draft.text)))


@transaction.atomic
def finish_draft(*, draft: TaskDraft, code: str) -> Task:
    """Create the task of a draft for its owner, and delete the draft.

    For locks, see `make_own_task`. Raises ConfigError, Refused.
    """
    source = find_source(draft.kind, draft.source, draft.owner)
    task_values = {
        "creator": draft.owner,
        "code": code,
        "text": build_draft_text(draft),
        "source": source,
    }
    task = make_own_task(**task_values)[0]  # type: ignore[arg-type]
    delete_draft(draft)
    return task
