"""Telling webhooks: a delivery for each event, claimed, sent and noted."""

import json
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.db.models import F
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from core.data.encryption import Unreadable, decrypt
from core.errors import Refused
from dynabench.webhooks.events import Happened, happened, may_know
from dynabench.webhooks.models import Delivery, Webhook
from dynabench.webhooks.services import make_test, switch_off
from dynabench.webhooks.signing import signature
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.client import SHARED
from tasks.targets.endpoints.server_words import words_in
from tasks.targets.endpoints.transport import Retry, parse_url

logger = logging.getLogger(__name__)
SECONDS = 10.0  # that a receiver has
ANSWER_BYTES = 2**20
AT_ONCE = 8
LOOK = 100  # for so many that are due, some of which others take or nobody may know of
LEASE = timedelta(minutes=1)  # far above SECONDS: nobody sends what another one is sending
WAITS = [timedelta(minutes=m) for m in (1, 5, 30, 120, 480)]  # after the first try and the next
FAILS_FOR = timedelta(days=3)  # that nothing arrives; then a webhook is switched off
GONE = 410  # "do not send here any more", says the specification
LATE = timedelta(minutes=15)
"""Rows may be committed that long after the time they bear, so that far is looked back."""
KEPT = timedelta(days=30)
SWITCHED_OFF = gettext_noop("The webhook was switched off.")  # stored, so in English
NO_RETRY = Retry(lost=False, statuses=frozenset())
State = Delivery.State


def note_events() -> int:
    """Make a delivery of each new event for each webhook that is on and may know of it; how many.

    No lock: what another worker noted meanwhile is passed by, by the unique key.
    """
    now = timezone.now()
    hooks = list(Webhook.objects.filter(on_since__isnull=False).select_related("user"))
    if not hooks:
        return 0
    found = happened(min(_since(hook) for hook in hooks))
    wanted = [(hook, one) for hook in hooks for one in found if _is_wanted(hook, one)]
    known_ones = Delivery.objects.filter(webhook__in=hooks, key__in={one.key for _, one in wanted})
    known = set(known_ones.values_list("webhook", "key"))
    new = [
        Delivery(webhook=hook, due_at=now, **vars(one))
        for hook, one in wanted
        if (hook.pk, one.key) not in known
        and may_know(hook.user, one.event, one.task, one.submission)
    ]
    Delivery.objects.bulk_create(new, ignore_conflicts=True)
    Webhook.objects.filter(pk__in=[hook.pk for hook in hooks]).update(looked_to=now)
    return len(new)


def _since(hook: Webhook) -> datetime:
    assert hook.on_since
    return max(hook.on_since, (hook.looked_to or hook.on_since) - LATE)


def _is_wanted(hook: Webhook, one: Happened) -> bool:
    in_time = one.happened_at >= _since(hook)
    return in_time and one.event in hook.events and hook.task_id in (None, one.task.pk)


@dataclass(frozen=True)
class Said:
    """What a receiver answered; status is None where there was no answer."""

    status: int | None
    error: str = ""


def send_due() -> int:
    """Send some of what is due, several at once; returns how many were taken."""
    taken = list(islice(_claimed(), AT_ONCE))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(_post, taken))
    for delivery, said in zip(taken, answers, strict=True):
        _note(delivery, said)
    return len(taken)


def _claimed() -> Iterator[Delivery]:
    """Take what is due, one after another. No lock: the update hits once."""
    now = timezone.now()
    due = Delivery.objects.filter(
        state=State.WAITING, due_at__lte=now, webhook__on_since__isnull=False
    )
    for pk in list(due.order_by("due_at").values_list("pk", flat=True)[:LOOK]):
        if delivery := claim(pk):
            if may_know(delivery.webhook.user, delivery.event, delivery.task, delivery.submission):
                yield delivery
            else:
                _end(delivery, state=State.WITHHELD, data={})


def claim(pk: UUID) -> Delivery | None:
    """The delivery, which nobody else sends until its lease ends; None: it is not due."""
    now, token = timezone.now(), uuid4()
    due = Delivery.objects.filter(pk=pk, state=State.WAITING, due_at__lte=now)
    if not due.update(due_at=now + LEASE, lease_token=token, tries=F("tries") + 1):
        return None
    rows = Delivery.objects.select_related("webhook__user", "task", "submission__task")
    return rows.filter(pk=pk, lease_token=token).first()


def greet(webhook: Webhook) -> Delivery | None:
    """Send a test to a new address once, at once; None: its person has sent too many.

    It is not tried again and counts as no failure, as the receiver may not know the secret yet.
    Call it outside transactions: it may take SECONDS.
    """
    try:
        made = make_test(webhook=webhook)
    except Refused:
        return None
    if delivery := claim(made.pk):
        said = _post(delivery)
        state = State.GIVEN_UP if said.error else State.SENT
        _end(delivery, state=state, **_columns(said))
        made.refresh_from_db()
    return made


def _post(delivery: Delivery) -> Said:
    """Send it, signed, to a checked address, within `SECONDS`. Asks no database."""
    id, now = str(delivery.pk), int(timezone.now().timestamp())
    happened_at = delivery.happened_at.isoformat()
    payload = {"type": delivery.event, "timestamp": happened_at, "data": delivery.data}
    body = json.dumps(payload).encode()
    try:
        secret = decrypt(delivery.webhook.secret)
    except Unreadable as error:
        return Said(None, f"It cannot be signed. {error} Make a new secret.")
    headers = {
        "webhook-id": id,
        "webhook-timestamp": str(now),
        "webhook-signature": signature(secret, id=id, timestamp=now, body=body),
    }
    try:
        reply = SHARED.request(
            "POST",
            parse_url(delivery.webhook.url),
            seconds=SECONDS,
            max_bytes=ANSWER_BYTES,
            allowed=tuple(settings.WEBHOOK_PRIVATE_HOSTS),
            secret=None,
            payload=body,
            retry=NO_RETRY,
            headers=[(name.encode(), value.encode()) for name, value in headers.items()],
        )
    except EndpointError as error:
        return Said(None, str(error).replace("The target", "The receiver"))
    if 200 <= reply.status < 300:
        return Said(reply.status)
    words = words_in(reply.body)
    return Said(reply.status, f"It answered {reply.status}{': ' + words if words else '.'}")


def _note(delivery: Delivery, said: Said) -> None:
    """What came of a try: done, another try later, or given up."""
    now = timezone.now()
    columns = _columns(said)
    if not said.error:
        if _end(delivery, state=State.SENT, **columns):
            Webhook.objects.filter(pk=delivery.webhook_id).update(failing_since=None)
        return
    if delivery.tries > len(WAITS):
        _end(delivery, state=State.GIVEN_UP, **columns)
    else:
        _end(delivery, due_at=now + WAITS[delivery.tries - 1], **columns)
    _note_failure(delivery.webhook, said, now)


def _columns(said: Said) -> dict[str, Any]:
    """What is stored of a try."""
    return {"status": said.status, "error": said.error[:500], "tried_at": timezone.now()}


def _end(delivery: Delivery, **changes: Any) -> int:
    """End a try, unless its lease ended before and another worker has it."""
    mine = Delivery.objects.filter(
        pk=delivery.pk, state=State.WAITING, lease_token=delivery.lease_token
    )
    return mine.update(lease_token=None, **changes)


@transaction.atomic
def _note_failure(hook: Webhook, said: Said, now: datetime) -> None:
    """Since when nothing arrives; after days of that, or a 410, it is switched off, with a mail.

    No lock: of several workers the one whose update switches it off mails.
    """
    Webhook.objects.filter(pk=hook.pk, failing_since=None).update(failing_since=now)
    failing = Webhook.objects.filter(pk=hook.pk, failing_since__lte=now - FAILS_FOR).exists()
    if (failing or said.status == GONE) and switch_off(hook, SWITCHED_OFF):
        transaction.on_commit(partial(_mail, hook, said))


def _mail(hook: Webhook, said: Said) -> None:
    values = {"webhook": hook, "error": said.error, "url": f"{settings.SITE_URL}/account/webhooks/"}
    text = render_to_string("webhooks/mail.txt", values)
    try:
        send_mail(_("Your webhook was switched off"), text, None, [hook.user.email])
    except Exception:  # mail servers fail in many ways; the page says it too
        logger.exception("No mail could be sent about %s", hook)


def purge() -> int:
    """Delete what is older than `KEPT`; returns how many rows."""
    return Delivery.objects.filter(created_at__lt=timezone.now() - KEPT).delete()[0]
