"""Writes and reads of comments on examples. The caller checks who may read the task."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.models import Example
from core.accounts.models import Annotator, User
from core.accounts.services import get_annotator, log
from core.errors import Refused
from tasks.models import Task, TaskMember
from tasks.permissions import READERS, can_own
from validation.models import Comment, Mention

EDIT_TIME = timedelta(hours=1)
"""The time in which people may change or delete their comments."""
MAX_COMMENTS = 500
"""The most comments on one example."""
# Pseudonyms have at most 40 characters.
MENTION_PATTERN = re.compile(r"@([\w-]{3,40})")
# By id, as names change and are forgotten when people leave.
STORED_MENTION_PATTERN = re.compile(r"@\{(\d+)\}")


class NotOwnComment(Refused):
    """Raised when a comment is another person's, or is too old to change."""

    status = 403
    code = "not_yours"


@dataclass(frozen=True, slots=True)
class ReadableComment:
    """A comment as the task's readers see it."""

    comment: Comment
    text: str
    can_change: bool
    can_remove: bool


def find_readers(task: Task) -> Mapping[str, Annotator]:
    """Return the members who may read the task, and so be mentioned, by case-folded pseudonym."""
    members = (
        TaskMember.objects.select_colleagues()
        .select_effective()
        .filter(task=task, role__in=READERS)
    )
    rows = members.filter(user__is_active=True).select_related("user__annotator").order_by("pk")
    people = (get_annotator(member.user) for member in rows)
    return {annotator.pseudonym.casefold(): annotator for annotator in people}


@transaction.atomic
def add_comment(*, example: Example, author: Annotator, text: str) -> Comment:
    """Store a comment and its mentions. Takes no lock. Raises Refused if there are too many."""
    # Two simultaneous requests may exceed it by one, which is not worth a lock.
    if Comment.objects.filter(example=example).count() >= MAX_COMMENTS:
        raise Refused(
            _("This example has reached the maximum number of comments. You can still read them."),
            code="too_many",
        )
    task = example.round.task
    stored_text, mentioned_people = _replace_names(text, task)
    comment = Comment.objects.create(example=example, author=author, text=stored_text)
    _store_mentions(comment, mentioned_people)
    return comment


@transaction.atomic
def change_comment(*, comment: Comment, author: Annotator, text: str) -> None:
    """Change one's own recent comment by a conditional update. Raises NotOwnComment."""
    stored_text, mentioned_people = _replace_names(text, comment.example.round.task)
    # Time and author are conditions of the update, so they are checked at the same instant.
    if not _select_own(comment, author).update(text=stored_text, edited_at=timezone.now()):
        raise NotOwnComment(
            _(
                "You can edit only your own comments, and only for one hour after posting. Add "
                "a new comment instead."
            )
        )
    # People who were already named keep their mention and whether they have seen it.
    comment.mentions.exclude(person__in=mentioned_people).delete()
    _store_mentions(comment, mentioned_people)


@transaction.atomic
def remove_comment(*, comment: Comment, actor: User) -> None:
    """Delete a comment's text but keep its row. Raises NotOwnComment.

    Authors can remove their own recent comments, owners any comment.
    """
    removal_values = {"text": "", "removed_at": timezone.now(), "reported_at": None}
    # Authors need no role to remove their own comments; removals by owners are logged.
    if _select_own(comment, get_annotator(actor)).update(**removal_values):
        return
    if not can_own(actor, comment.example.round.task):
        raise NotOwnComment(
            _(
                "You can delete only your own comments, and only for one hour after "
                "posting. Ask an owner to delete this one."
            )
        )
    # If two owners remove it at once, only the first removal is stored and logged.
    if Comment.objects.filter(pk=comment.pk, removed_at__isnull=True).update(**removal_values):
        log(actor, "comment.removed", comment.example)


def report_comment(*, comment: Comment) -> None:
    """Report a comment to the owners. One update."""
    visible_comment = Comment.objects.filter(pk=comment.pk, removed_at__isnull=True)
    # A second report does not change the time of the first.
    visible_comment.filter(reported_at__isnull=True).update(reported_at=timezone.now())


@transaction.atomic
def dismiss_report(*, comment: Comment, actor: User) -> None:
    """Dismiss the report of a comment."""
    # If two owners settle it at once, only the first is stored and logged.
    if Comment.objects.filter(pk=comment.pk, reported_at__isnull=False).update(reported_at=None):
        log(actor, "comment.kept", comment.example)


def mark_mentions_seen(*, person: Annotator, example: Example) -> None:
    """Mark the example's mentions of the person as seen. One update."""
    # A second visit does not change the time of the first.
    unseen_mentions = Mention.objects.filter(
        person=person, comment__example=example, seen_at__isnull=True
    )
    unseen_mentions.update(seen_at=timezone.now())


def select_unseen_mentions() -> QuerySet[Mention]:
    """Select unseen mentions of people who may still read the task."""
    task = "comment__example__round__task"
    readers = TaskMember.objects.select_effective().filter(
        role__in=READERS, user=OuterRef("person__user"), task=OuterRef(task)
    )
    rows = Mention.objects.filter(Exists(readers), seen_at=None, comment__removed_at=None)
    rows = rows.filter(person__user__is_active=True).order_by("pk")
    return rows.select_related("person__user", task)


def read_discussion(example: Example, reader: User) -> list[ReadableComment]:
    """Return the comments on an example, oldest first. Three queries."""
    rows = Comment.objects.filter(example=example).select_related("author")
    is_owner = can_own(reader, example.round.task)
    own_annotator = get_annotator(reader)
    comments = []
    for comment in rows.prefetch_related("mentions__person"):
        is_own = (
            comment.author_id == own_annotator.pk
            and comment.created_at > timezone.now() - EDIT_TIME
        )
        names = {mention.person_id: mention.person.pseudonym for mention in comment.mentions.all()}
        can_remove = not comment.removed_at and (is_own or is_owner)
        can_change = not comment.removed_at and is_own
        comments.append(
            ReadableComment(comment, _restore_names(comment.text, names), can_change, can_remove)
        )
    return comments


def _select_own(comment: Comment, author: Annotator) -> QuerySet[Comment]:
    """Select the comment if it is the person's own and may still be changed."""
    editable_comments = timezone.now() - EDIT_TIME
    own_comment = Comment.objects.filter(
        pk=comment.pk, author=author, created_at__gt=editable_comments
    )
    return own_comment.filter(removed_at__isnull=True)


def _replace_names(text: str, task: Task) -> tuple[str, Sequence[Annotator]]:
    """Return the text as it is stored, and the readers it mentions; other names stay plain text."""
    if "@" not in text:
        return text, []
    readers, mentioned_people = find_readers(task), []

    def replace_name(match: re.Match[str]) -> str:
        person = readers.get(match[1].casefold())
        if person is None:
            return match[0]
        mentioned_people.append(person)
        return f"@{{{person.pk}}}"

    return MENTION_PATTERN.sub(replace_name, text), mentioned_people


def _store_mentions(comment: Comment, mentioned_people: Iterable[Annotator]) -> None:
    now = timezone.now()
    rows = [
        # People who name themselves need no notice.
        Mention(comment=comment, person=name, seen_at=now if name.pk == comment.author_id else None)
        for name in set(mentioned_people)
    ]
    # An edit may name people whom the comment already named.
    Mention.objects.bulk_create(rows, ignore_conflicts=True)


def _restore_names(text: str, names: Mapping[int, str]) -> str:
    """Return a stored text with the current names of the people whom it mentions.

    People who are not in `names` are shown by their id, so that their names are not revealed.
    """
    return STORED_MENTION_PATTERN.sub(lambda match: f"@{names.get(int(match[1]), match[1])}", text)
