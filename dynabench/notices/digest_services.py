"""Sends the digests, at most one email a day to a person, and stores who wants which news."""

import logging
from collections import defaultdict
from collections.abc import Iterable
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

from core.accounts.languages import activate_user_language
from core.accounts.models import User
from dynabench.notices.assignments import AssignmentNews, filter_unfinished, find_assignment_news
from dynabench.notices.models import Digest, Notice
from dynabench.notices.news import find_news
from dynabench.notices.registry import TASKS_SWITCH, News, list_kinds_with_mails, list_switches
from dynabench.notices.sentences import DigestItem
from dynabench.notices.services import renew_notices
from evaluation.submissions.emails import MAIL_SERVER_AWAY_ERRORS
from tasks.mails import build_unsubscribe_headers
from tasks.models import TaskMember
from tasks.permissions import REVIEWERS
from validation.discussion.services import select_unseen_mentions
from validation.models import Mention

logger = logging.getLogger(__name__)
RENEW_SECONDS = 600
"""How often, in seconds, all tasks are checked."""
DIGEST_INTERVAL = timedelta(hours=24)
"""The shortest time between two digests of one person."""
LINK_SALT = "notices.off"


def renew_notices_and_send_digests() -> None:
    """Update notices and send digests, at most every ten minutes.

    A worker calls this every minute.
    """
    # `add` succeeds once in ten minutes, in one of several workers.
    if cache.add("notices:renewed", True, RENEW_SECONDS):
        renew_notices()
        send_digests()


def send_digests() -> int:
    """Email people the news since their last digest, at most once a day.

    Returns the number of emails. Takes no lock: the worker whose update succeeds sends the email.
    While the mail server is down, no email is sent, and the next call tries again. An email that
    fails for another reason is counted and not tried again.
    """
    sent_count = 0
    notices, mentions = _group_news_by_person(), _group_mentions_by_person()
    for user in notices | mentions:
        digest, now = Digest.objects.get_or_create(user=user)[0], timezone.now()
        # Before anything else is looked up: most people had theirs within a day.
        if not digest.wanted_kinds or (digest.told_at and now - digest.told_at < DIGEST_INTERVAL):
            continue
        since = digest.told_at or datetime.min.replace(tzinfo=UTC)
        fresh_items = [
            item
            for item in notices.get(user, [])
            if item.began_at > since and get_kind(item) in digest.wanted_kinds
        ]
        fresh_items = _drop_finished_assignments(user, fresh_items)
        fresh_mentions = []
        if TASKS_SWITCH in digest.wanted_kinds:
            fresh_mentions = [
                mention for mention in mentions.get(user, []) if mention.created_at > since
            ]
        if not (fresh_items or fresh_mentions):
            continue
        # The filter on the time makes this succeed in one of several workers.
        is_due = Q(told_at=None) | Q(told_at__lte=now - DIGEST_INTERVAL)
        unsent_digest = Digest.objects.filter(is_due, pk=digest.pk, is_off=False)
        if not unsent_digest.update(told_at=now):
            continue
        try:
            with activate_user_language(user):
                _build_digest_mail(user, fresh_items, fresh_mentions).send()
        except MAIL_SERVER_AWAY_ERRORS as error:
            logger.error("The mail server is unavailable, so digests wait: %s", error)
            # Given back, so that the next call sends it.
            Digest.objects.filter(pk=digest.pk).update(told_at=digest.told_at)
            return sent_count
        except Exception:  # mail servers fail in many ways, and the pages show it all
            logger.exception("A digest could not be sent")
        sent_count += 1
    return sent_count


def _drop_finished_assignments(user: User, items: list[DigestItem]) -> list[DigestItem]:
    """Return the items without finished assignments, sorted by task."""
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
        TaskMember.objects.select_colleagues()
        .select_effective()
        .filter(task__in=notices, role__in=REVIEWERS, user__is_active=True)
    )
    items_by_person: dict[User, list[DigestItem]] = defaultdict(list)
    for member in members.select_related("user", "task").order_by("task__name"):
        for notice in notices[member.task_id]:
            # The member's row has the task already, so that the mail reads it without a query.
            notice.task = member.task
            items_by_person[member.user].append(notice)
    for user, assignment_item in find_assignment_news(timezone.now()):
        items_by_person[user].append(assignment_item)
    for news_item in find_news(timezone.now()):
        items_by_person[news_item.user].append(news_item)
    return items_by_person


def _group_mentions_by_person() -> dict[User, list[Mention]]:
    """Return the unread mentions of each person with an account."""
    mentions_by_person = defaultdict(list)
    for mention in select_unseen_mentions():
        if mention.person.user is not None:
            mentions_by_person[mention.person.user].append(mention)
    return mentions_by_person


def _build_digest_mail(
    user: User, notices: list[DigestItem], mentions: list[Mention]
) -> EmailMessage:
    """Return the digest email, with links that switch off each kind of item in it."""
    # Signed, so that it works without signing in and for this person only.
    off_link = settings.SITE_URL + reverse(
        "notices-off", args=[signing.dumps(user.pk, salt=LINK_SALT)]
    )
    included_kinds = {get_kind(item) for item in notices}
    if mentions:
        included_kinds.add(TASKS_SWITCH)
    switch_links = []
    for kind, label in list_switches().items():
        if kind in included_kinds:
            switch_links.append((label, f"{off_link}?kind={kind}"))
    values = {"notices": notices, "mentions": mentions, "site": settings.SITE_URL}
    text = render_to_string("notices/digest.txt", values | {"off": off_link, "kinds": switch_links})
    subject = (
        _("Your tasks need your attention")
        if TASKS_SWITCH in included_kinds
        else _("News about your work")
    )
    # With one kind in it, the mail program's button switches that kind off; else everything.
    headers = build_unsubscribe_headers(switch_links[0][1] if len(switch_links) == 1 else off_link)
    return EmailMessage(str(subject), text, None, [user.email], headers=headers)


def find_token_user(token: str) -> User:
    """Return the user whose digest contained the token's link.

    Raises signing.BadSignature or User.DoesNotExist.
    """
    return User.objects.get(pk=signing.loads(token, salt=LINK_SALT))


def switch_digest(*, user: User, is_off: bool, kind: str = "") -> None:
    """Switch all of a person's digest emails, or one kind of item, on or off.

    kind: the kind of item, or "" for all. If all are off, switching a kind on leaves the others
    off. Switching all off also ends the summary on Mondays. Takes no lock: the last change wins.
    """
    digest = Digest.objects.get_or_create(user=user)[0]
    if kind:
        unwanted_kinds = set(list_switches()) - set(digest.wanted_kinds)
        if is_off:
            unwanted_kinds.add(kind)
        else:
            unwanted_kinds.discard(kind)
        digest.off = " ".join(sorted(unwanted_kinds))
    # Who switches one kind on again while all are off gets that kind only.
    digest.is_off = is_off and not kind
    # All email is also the summary on Mondays, which comes back by its own switch only.
    digest.is_weekly = digest.is_weekly and not digest.is_off
    digest.save(update_fields=["off", "is_off", "is_weekly"])


def set_wanted_kinds(*, user: User, kinds: Iterable[str]) -> None:
    """Set the kinds of items that a person is emailed about; without any, switch all emails off.

    Takes no lock: the last change wins.
    """
    unwanted_kinds = set(list_switches()).difference(kinds)
    values = {"off": " ".join(sorted(unwanted_kinds)), "is_off": False}
    if len(unwanted_kinds) == len(list_switches()):
        # As by the switch for all emails, which brings every kind back.
        values = {"off": "", "is_off": True}
    Digest.objects.update_or_create(user=user, defaults=values)


def get_kind(item: DigestItem) -> str:
    """Return the kind under which an item can be switched off."""
    return item.kind if isinstance(item, News) else TASKS_SWITCH
