"""Notices come and go, and people are told of them once a day."""

import logging
from collections import defaultdict
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.core import signing
from django.core.cache import cache
from django.core.mail import EmailMessage
from django.db.models import Q
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from core.accounts.models import User
from dynabench.notices.duties import DutyNews, duty_news, undone
from dynabench.notices.facts import facts
from dynabench.notices.models import TOLD_APART, About, Digest, Notice
from dynabench.notices.news import News, news
from dynabench.notices.rules import wanted
from dynabench.notices.said import Told
from evaluation.submissions.emails import AWAY
from tasks.mails import unsubscribed_by
from tasks.models import TaskMember
from tasks.permissions import REVIEWERS
from validation.discussion.services import unseen_mentions
from validation.models import Mention

logger = logging.getLogger(__name__)
EACH_SECONDS = 600
A_DAY = timedelta(hours=24)
SALT = "notices.off"


def renew_and_tell() -> None:
    """What a worker does each minute: every ten minutes look at all tasks, then mail digests."""
    if cache.add("notices:renewed", True, EACH_SECONDS):
        renew_notices()
        send_digests()


def note_seen(*, user: User, now: datetime) -> None:
    """Store that the person has just looked at their news. No lock: the last look wins."""
    Digest.objects.update_or_create(user=user, defaults={"seen_at": now})


def renew_notices() -> None:
    """Open the notices that are due, renew their numbers, and end the others.

    No lock: `notice_one_open` holds where two workers do it at once.
    """
    now = timezone.now()
    due = {
        (task, one.kind, one.round): one.numbers
        for task, known in facts(now).items()
        for one in wanted(known, now)
    }
    there = {
        (one.task_id, one.kind, one.round): one for one in Notice.objects.filter(ended_at=None)
    }
    over = [one.pk for key, one in there.items() if key not in due]
    Notice.objects.filter(pk__in=over).update(ended_at=now)
    changed = [one for key, one in there.items() if key in due and one.numbers != due[key]]
    for one in changed:
        one.numbers = due[one.task_id, one.kind, one.round]
    Notice.objects.bulk_update(changed, ["numbers"])
    Notice.objects.bulk_create(
        (
            Notice(task_id=task, kind=kind, round=round, numbers=numbers)
            for (task, kind, round), numbers in due.items()
            if (task, kind, round) not in there
        ),
        ignore_conflicts=True,
    )


def send_digests() -> int:
    """Mail the open notices that began since a person was last told, once a day; how many mails.

    No lock: of several workers, the one whose update hits mails. While the mail server is away
    nobody gets a mail; the next call tries again.
    """
    sent = 0
    notices, mentions = _untold(), _mentions()
    for user in {**notices, **mentions}:
        mine, now = Digest.objects.get_or_create(user=user)[0], timezone.now()
        if not mine.wanted or (mine.told_at and now - mine.told_at < A_DAY):
            continue
        since = mine.told_at or datetime.min.replace(tzinfo=UTC)
        fresh = [one for one in notices.get(user, []) if one.began_at > since]
        fresh = _still_true(user, [one for one in fresh if kind_of(one) in mine.wanted])
        named = [one for one in mentions.get(user, []) if one.created_at > since]
        named = named if About.TASKS in mine.wanted else []
        rested = Q(told_at=None) | Q(told_at__lte=now - A_DAY)
        row = Digest.objects.filter(rested, pk=mine.pk, is_off=False)
        if not (fresh or named) or not row.update(told_at=now):
            continue
        try:
            _mail(user, fresh, named).send()
        except AWAY as error:
            logger.error("The mail server is away; digests wait: %s", error)
            Digest.objects.filter(pk=mine.pk).update(told_at=mine.told_at)
            return sent
        except Exception:  # mail servers fail in many ways, and the pages show it all
            logger.exception("A digest could not be sent")
        sent += 1
    return sent


def _still_true(user: User, told: list[Told]) -> list[Told]:
    """Without the assignments that the person has done; by task."""
    duties = undone(user, [one for one in told if isinstance(one, DutyNews)])
    others = [one for one in told if not isinstance(one, DutyNews)]
    return sorted([*others, *duties], key=lambda one: (one.task.name, one.task_id))


def _untold() -> dict[User, list[Told]]:
    """The open notices of each person who may act on them, and what is new of assignments."""
    notices = defaultdict(list)
    for one in Notice.objects.filter(ended_at=None).exclude(kind__in=TOLD_APART).order_by("pk"):
        notices[one.task_id].append(one)
    members = (
        TaskMember.objects.colleagues()
        .standing()
        .filter(task__in=notices, role__in=REVIEWERS, user__is_active=True)
    )
    found: dict[User, list[Told]] = defaultdict(list)
    for member in members.select_related("user", "task").order_by("task__name"):
        for one in notices[member.task_id]:
            one.task = member.task
            found[member.user].append(one)
    for user, duty in duty_news(timezone.now()):
        found[user].append(duty)
    for one_news in news(timezone.now()):
        found[one_news.user].append(one_news)
    return found


def _mentions() -> dict[User, list[Mention]]:
    """The unseen mentions of each person."""
    found = defaultdict(list)
    for one in unseen_mentions():
        if one.person.user is not None:
            found[one.person.user].append(one)
    return found


def _mail(user: User, notices: list[Told], mentions: list[Mention]) -> EmailMessage:
    off = settings.SITE_URL + reverse("notices-off", args=[signing.dumps(user.pk, salt=SALT)])
    told = {kind_of(one) for one in notices} | ({About.TASKS} if mentions else set())
    kinds = [(one.label, f"{off}?kind={one}") for one in About if one in told]
    values = {"notices": notices, "mentions": mentions, "site": settings.SITE_URL}
    text = render_to_string("notices/digest.txt", values | {"off": off, "kinds": kinds})
    subject = _("Your tasks need you") if About.TASKS in told else _("News of your work")
    # With one kind in it, the mail program's button switches that kind off; else everything.
    headers = unsubscribed_by(kinds[0][1] if len(kinds) == 1 else off)
    return EmailMessage(subject, text, None, [user.email], headers=headers)


def person_of(token: str) -> User:
    """Whose digest the link of a mail is about. Raises signing.BadSignature, User.DoesNotExist."""
    return User.objects.get(pk=signing.loads(token, salt=SALT))


def set_digest(*, user: User, is_off: bool, kind: str = "") -> None:
    """Send somebody digests, or none any more, or none of a kind; no lock, the last one wins."""
    mine = Digest.objects.get_or_create(user=user)[0]
    if kind:
        unwanted = {*About.values} - {*mine.wanted}
        mine.off = " ".join(sorted(unwanted | {kind} if is_off else unwanted - {kind}))
    mine.is_off = is_off and not kind
    mine.save(update_fields=["off", "is_off"])


def kind_of(told: Told) -> str:
    """By which switch it is told."""
    return told.kind if isinstance(told, News) else About.TASKS
