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
from core.accounts.services import annotator_of, log
from core.errors import Refused
from tasks.models import Task, TaskMember
from tasks.permissions import READERS, can_own
from validation.models import Comment, Mention

EDIT_TIME = timedelta(hours=1)
"""For so long people change or delete what they said."""
MOST = 500
"""Most comments on one example."""
# Pseudonyms have at most 40 characters.
MENTION_PATTERN = re.compile(r"@([\w-]{3,40})")
# By id, as names change and are forgotten when people leave.
STORED_MENTION_PATTERN = re.compile(r"@\{(\d+)\}")


class NotYours(Refused):
    """Raised when a comment is another person's, or is too old to change."""

    status = 403
    code = "not_yours"


@dataclass(frozen=True, slots=True)
class Shown:
    """A comment as the task's readers see it."""

    comment: Comment
    text: str
    may_change: bool
    may_remove: bool


def readers_of(task: Task) -> Mapping[str, Annotator]:
    """Return by pseudonym the members who may read the task, and so be mentioned. Takes no lock."""
    members = TaskMember.objects.colleagues().standing().filter(task=task, role__in=READERS)
    rows = members.filter(user__is_active=True).select_related("user__annotator").order_by("pk")
    people = (annotator_of(member.user) for member in rows)
    return {person.pseudonym.casefold(): person for person in people}


@transaction.atomic
def add_comment(*, example: Example, author: Annotator, text: str) -> Comment:
    """Store a comment and its mentions. Takes no lock. Raises Refused if there are too many."""
    # Two at once may exceed it by one, which is not worth a lock.
    if Comment.objects.filter(example=example).count() >= MOST:
        raise Refused(_("This example has the most comments that it may."), code="too_many")
    task = example.round.task
    stored, named = _replace_names(text, task)
    comment = Comment.objects.create(example=example, author=author, text=stored)
    _mention(comment, named)
    return comment


@transaction.atomic
def change(*, comment: Comment, author: Annotator, text: str) -> None:
    """Change one's own recent comment by a conditional update. Raises NotYours."""
    stored, mentioned_people = _replace_names(text, comment.example.round.task)
    # The condition of time and author is part of the update, so it holds while others change it.
    if not _select_own(comment, author).update(text=stored, edited_at=timezone.now()):
        raise NotYours(_("One’s own comment can be changed for an hour."))
    # Others who were named keep their mention, and whether they have seen it.
    comment.mentions.exclude(person__in=mentioned_people).delete()
    _mention(comment, mentioned_people)


@transaction.atomic
def remove(*, comment: Comment, actor: User) -> None:
    """Delete a comment's text but keep its row. Raises NotYours.

    Authors can remove their own recent comments, owners any comment.
    """
    removal_values = {"text": "", "removed_at": timezone.now(), "reported_at": None}
    # Its author needs no role for that; what an owner removes is logged.
    if _select_own(comment, annotator_of(actor)).update(**removal_values):
        return
    if not can_own(actor, comment.example.round.task):
        raise NotYours(_("One’s own comment can be deleted for an hour. Ask an owner."))
    # Of two owners only the first removes it, and only that is logged.
    if Comment.objects.filter(pk=comment.pk, removed_at__isnull=True).update(**removal_values):
        log(actor, "comment.removed", comment.example)


def report(*, comment: Comment) -> None:
    """Report a comment to the owners. One update."""
    standing = Comment.objects.filter(pk=comment.pk, removed_at__isnull=True)
    # A second report keeps the time of the first.
    standing.filter(reported_at__isnull=True).update(reported_at=timezone.now())


@transaction.atomic
def keep_comment(*, comment: Comment, actor: User) -> None:
    """Dismiss the report of a comment."""
    # Of two owners only the first settles the report, and only that is logged.
    if Comment.objects.filter(pk=comment.pk, reported_at__isnull=False).update(reported_at=None):
        log(actor, "comment.kept", comment.example)


def mark_mentions_seen(*, person: Annotator, example: Example) -> None:
    """Mark the example's mentions of the person as seen. One update."""
    # A second visit keeps the time of the first.
    unseen = Mention.objects.filter(person=person, comment__example=example, seen_at__isnull=True)
    unseen.update(seen_at=timezone.now())


def unseen_mentions() -> QuerySet[Mention]:
    """Select unseen mentions of people who may still read the task."""
    task = "comment__example__round__task"
    readers = TaskMember.objects.standing().filter(
        role__in=READERS, user=OuterRef("person__user"), task=OuterRef(task)
    )
    rows = Mention.objects.filter(Exists(readers), seen_at=None, comment__removed_at=None)
    rows = rows.filter(person__user__is_active=True).order_by("pk")
    return rows.select_related("person__user", task)


def discussion(example: Example, reader: User) -> list[Shown]:
    """Return the comments on an example, oldest first. Three queries."""
    rows = Comment.objects.filter(example=example).select_related("author")
    owns = can_own(reader, example.round.task)
    me = annotator_of(reader)
    comments = []
    for comment in rows.prefetch_related("mentions__person"):
        is_own = comment.author_id == me.pk and comment.created_at > timezone.now() - EDIT_TIME
        names = {mention.person_id: mention.person.pseudonym for mention in comment.mentions.all()}
        may_remove = not comment.removed_at and (is_own or owns)
        may_change = not comment.removed_at and is_own
        comments.append(Shown(comment, _restore_names(comment.text, names), may_change, may_remove))
    return comments


def _select_own(comment: Comment, author: Annotator) -> QuerySet[Comment]:
    """Select the comment if it is the person's own and may still be changed."""
    recent = timezone.now() - EDIT_TIME
    own_comment = Comment.objects.filter(pk=comment.pk, author=author, created_at__gt=recent)
    return own_comment.filter(removed_at__isnull=True)


def _replace_names(text: str, task: Task) -> tuple[str, Sequence[Annotator]]:
    """Return the text as it is stored, and the readers it mentions; other names stay plain text."""
    if "@" not in text:
        return text, []
    readers, mentioned_people = readers_of(task), []

    def stored(match: re.Match[str]) -> str:
        person = readers.get(match[1].casefold())
        if person is None:
            return match[0]
        mentioned_people.append(person)
        return f"@{{{person.pk}}}"

    return MENTION_PATTERN.sub(stored, text), mentioned_people


def _mention(comment: Comment, mentioned_people: Iterable[Annotator]) -> None:
    now = timezone.now()
    rows = [
        # People who name themselves need no notice of it.
        Mention(comment=comment, person=name, seen_at=now if name.pk == comment.author_id else None)
        for name in set(mentioned_people)
    ]
    # An edit may name people whom the comment named before.
    Mention.objects.bulk_create(rows, ignore_conflicts=True)


def _restore_names(text: str, names: Mapping[int, str]) -> str:
    """Return a stored text with people's current names; other people's names are not revealed."""
    return STORED_MENTION_PATTERN.sub(lambda match: f"@{names.get(int(match[1]), match[1])}", text)
