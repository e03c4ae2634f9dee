"""Writes about notices, which open and end, and the digests that people get once a day."""

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

from core.accounts.languages import in_language_of
from core.accounts.models import User
from dynabench.notices.assignments import AssignmentNews, filter_unfinished, find_assignment_news
from dynabench.notices.facts import find_due_notices
from dynabench.notices.models import Digest, Notice
from dynabench.notices.news import find_news
from dynabench.notices.registry import TASKS_SWITCH, News, list_kinds_with_mails, list_switches
from dynabench.notices.sentences import DigestItem
from evaluation.submissions.emails import MAIL_SERVER_AWAY
from tasks.mails import build_unsubscribe_headers
from tasks.models import TaskMember
from tasks.permissions import REVIEWERS
from validation.discussion.services import unseen_mentions
from validation.models import Mention

logger = logging.getLogger(__name__)
RENEW_SECONDS = 600
"""How often all tasks are looked at."""
DIGEST_INTERVAL = timedelta(hours=24)
LINK_SALT = "notices.off"


def renew_and_tell() -> None:
    """Update notices and send digests, at most every ten minutes.

    A worker calls this every minute.
    """
    # `add` succeeds once in ten minutes, in one of several workers.
    if cache.add("notices:renewed", True, RENEW_SECONDS):
        renew_notices()
        send_digests()


def note_seen(*, user: User, now: datetime) -> None:
    """Record that the person has just looked at their news. No lock: the last look wins."""
    Digest.objects.update_or_create(user=user, defaults={"seen_at": now})


def renew_notices() -> None:
    """Open notices that are due, update the numbers of open ones, and end the others.

    No lock: the unique constraint `notice_one_open` keeps two workers from opening the same
    notice twice.
    """
    now = timezone.now()
    due = find_due_notices(now)
    open_notices = {
        (notice.task_id, notice.kind, notice.round): notice
        for notice in Notice.objects.filter(ended_at=None)
    }
    ended_ids = [notice.pk for key, notice in open_notices.items() if key not in due]
    Notice.objects.filter(pk__in=ended_ids).update(ended_at=now)
    changed_notices = []
    for key, row in open_notices.items():
        if key in due and row.numbers != due[key]:
            row.numbers = due[key]
            changed_notices.append(row)
    Notice.objects.bulk_update(changed_notices, ["numbers"])
    new_notices = [
        Notice(task_id=task, kind=kind, round=round, numbers=numbers)
        for (task, kind, round), numbers in due.items()
        if (task, kind, round) not in open_notices
    ]
    Notice.objects.bulk_create(new_notices, ignore_conflicts=True)


def send_digests() -> int:
    """Email people the news since their last digest, once a day; return how many emails.

    No lock: the worker whose update succeeds sends the email. While the mail server is
    down, no email is sent, and the next call tries again.
    """
    sent_count = 0
    notices, mentions = _group_news_by_person(), _group_mentions_by_person()
    for user in notices | mentions:
        digest, now = Digest.objects.get_or_create(user=user)[0], timezone.now()
        # Before anything else is looked up: most people had theirs within a day.
        if not digest.wanted or (digest.told_at and now - digest.told_at < DIGEST_INTERVAL):
            continue
        since = digest.told_at or datetime.min.replace(tzinfo=UTC)
        fresh_items = [
            item
            for item in notices.get(user, [])
            if item.began_at > since and get_kind(item) in digest.wanted
        ]
        fresh_items = _drop_finished(user, fresh_items)
        fresh_mentions = []
        if TASKS_SWITCH in digest.wanted:
            fresh_mentions = [each for each in mentions.get(user, []) if each.created_at > since]
        if not (fresh_items or fresh_mentions):
            continue
        # The filter on the time makes this succeed in one of several workers.
        is_due = Q(told_at=None) | Q(told_at__lte=now - DIGEST_INTERVAL)
        row = Digest.objects.filter(is_due, pk=digest.pk, is_off=False)
        if not row.update(told_at=now):
            continue
        try:
            with in_language_of(user):
                _build_digest_mail(user, fresh_items, fresh_mentions).send()
        except MAIL_SERVER_AWAY as error:
            logger.error("The mail server is away; digests wait: %s", error)
            # Given back, so that the next call sends it.
            Digest.objects.filter(pk=digest.pk).update(told_at=digest.told_at)
            return sent_count
        except Exception:  # mail servers fail in many ways, and the pages show it all
            logger.exception("A digest could not be sent")
        sent_count += 1
    return sent_count


def _drop_finished(user: User, items: list[DigestItem]) -> list[DigestItem]:
    """Return the items, sorted by task, without finished assignments."""
    remaining_items: list[DigestItem] = [
        item for item in items if not isinstance(item, AssignmentNews)
    ]
    remaining_items += filter_unfinished(
        user, [item for item in items if isinstance(item, AssignmentNews)]
    )
    return sorted(remaining_items, key=lambda item: (item.task.name, item.task_id))


def _group_news_by_person() -> dict[User, list[DigestItem]]:
    """Return each person's open notices, news about assignments, and personal news.

    Notices go to the people who may act on them.
    """
    notices = defaultdict(list)
    rows = Notice.objects.filter(ended_at=None).exclude(kind__in=list_kinds_with_mails())
    for notice in rows.order_by("pk"):
        notices[notice.task_id].append(notice)
    # People who review see reports and models; others could not act on them.
    members = (
        TaskMember.objects.colleagues()
        .standing()
        .filter(task__in=notices, role__in=REVIEWERS, user__is_active=True)
    )
    by_person: dict[User, list[DigestItem]] = defaultdict(list)
    for member in members.select_related("user", "task").order_by("task__name"):
        for notice in notices[member.task_id]:
            # The member's row has the task already, so that the mail reads it without a query.
            notice.task = member.task
            by_person[member.user].append(notice)
    for user, assignment_item in find_assignment_news(timezone.now()):
        by_person[user].append(assignment_item)
    for news_item in find_news(timezone.now()):
        by_person[news_item.user].append(news_item)
    return by_person


def _group_mentions_by_person() -> dict[User, list[Mention]]:
    """Return the unread mentions of each person with an account."""
    by_person = defaultdict(list)
    for mention in unseen_mentions():
        if mention.person.user is not None:
            by_person[mention.person.user].append(mention)
    return by_person


def _build_digest_mail(
    user: User, notices: list[DigestItem], mentions: list[Mention]
) -> EmailMessage:
    """Return the digest email, with a link that switches off each of its kinds."""
    # Signed, so that it works without signing in and for this person only.
    off_link = settings.SITE_URL + reverse(
        "notices-off", args=[signing.dumps(user.pk, salt=LINK_SALT)]
    )
    kinds_in_it = {get_kind(item) for item in notices}
    if mentions:
        kinds_in_it.add(TASKS_SWITCH)
    kinds = []
    for kind, label in list_switches().items():
        if kind in kinds_in_it:
            kinds.append((label, f"{off_link}?kind={kind}"))
    values = {"notices": notices, "mentions": mentions, "site": settings.SITE_URL}
    text = render_to_string("notices/digest.txt", values | {"off": off_link, "kinds": kinds})
    subject = _("Your tasks need you") if TASKS_SWITCH in kinds_in_it else _("News of your work")
    # With one kind in it, the mail program's button switches that kind off; else everything.
    headers = build_unsubscribe_headers(kinds[0][1] if len(kinds) == 1 else off_link)
    return EmailMessage(str(subject), text, None, [user.email], headers=headers)


def find_token_user(token: str) -> User:
    """Return the user to whose digest a link's token belongs.

    Raises signing.BadSignature, User.DoesNotExist.
    """
    return User.objects.get(pk=signing.loads(token, salt=LINK_SALT))


def set_digest(*, user: User, is_off: bool, kind: str = "") -> None:
    """Switch all of a person's digest emails, or one kind of item, on or off.

    kind: empty for all. No lock: the last change wins.
    """
    digest = Digest.objects.get_or_create(user=user)[0]
    if kind:
        unwanted_kinds = set(list_switches()) - set(digest.wanted)
        if is_off:
            unwanted_kinds.add(kind)
        else:
            unwanted_kinds.discard(kind)
        digest.off = " ".join(sorted(unwanted_kinds))
    # Who switches one kind on again while all are off gets that kind only.
    digest.is_off = is_off and not kind
    digest.save(update_fields=["off", "is_off"])


def get_kind(item: DigestItem) -> str:
    """Return the kind under which an item can be switched off."""
    return item.kind if isinstance(item, News) else TASKS_SWITCH
