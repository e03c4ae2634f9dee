"""Functions that store data about people, and the audit log."""

from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError, transaction

from core.accounts.models import Annotator, LogEntry, User

Actor = User | AnonymousUser | None


def get_annotator(user: User) -> Annotator:
    """Return the user's annotator, creating one if there is none.

    Takes no lock: a unique constraint lets only one request create it. Raises RuntimeError if five
    random pseudonyms are taken.
    """
    try:
        return user.annotator  # type: ignore[no-any-return]
    except Annotator.DoesNotExist:
        pass
    for _ in range(5):  # a pseudonym may be taken, or another request was first
        try:
            with transaction.atomic():
                return Annotator.objects.get_or_create(user=user)[0]
        except IntegrityError:
            continue
    raise RuntimeError("No free pseudonym was found in five tries.")


def set_keyboard_mode(*, annotator: Annotator, is_on: bool) -> None:
    """Switch single-key shortcuts on or off for an annotator."""
    annotator.keyboard_mode = is_on
    annotator.save(update_fields=["keyboard_mode"])


def set_ranking_visibility(*, annotator: Annotator, is_on: bool) -> None:
    """Show the annotator's pseudonym in rankings of people, or hide it. Takes no lock."""
    annotator.in_ranking = is_on
    annotator.save(update_fields=["in_ranking"])


def set_language(*, user: User, language: str) -> None:
    """Store the language for mails to a person. Idempotent; takes no lock."""
    User.objects.filter(pk=user.pk).update(language=language)


def log(
    actor: Actor,
    action: str,
    target: object,
    *,
    about: object | None = None,
    **data: Any,
) -> LogEntry:
    """Add an entry to the audit log and return it. Call it in the transaction of the change.

    about: an object of the task whose members may read the entry, if `target` does not belong to
    it.
    """
    user = actor if isinstance(actor, User) else None
    return LogEntry.objects.create(
        actor=user,
        action=action,
        target=str(target),
        task=_get_task_code(about or target),
        data=data,
    )


TASK_PATHS = (
    "code",
    "task.code",
    "round.task.code",
    "context.round.task.code",
    "evaluation_set.task.code",
    "version.evaluation_set.task.code",
    "board.task.code",
    "example.round.task.code",
)


def _get_task_code(target: object) -> str:
    """Return the code of the task that an object belongs to, or ""."""
    for path in TASK_PATHS:
        related_object: Any = target
        for name in path.split("."):
            related_object = getattr(related_object, name, None)
        if isinstance(related_object, str):
            return related_object
    return ""
