"""Deliveries to webhooks: one for each event, which is claimed, sent and noted."""

import json
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, islice
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

from core.accounts.languages import write_in_language_of
from core.data.encryption import Unreadable, decrypt
from core.errors import Refused
from dynabench.webhooks.events import EventRecord, find_events, may_know_event
from dynabench.webhooks.models import Delivery, Webhook
from dynabench.webhooks.services import make_test, switch_off_webhook
from dynabench.webhooks.signing import compute_signature
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.client import SHARED_TRANSPORT
from tasks.targets.endpoints.server_words import read_message
from tasks.targets.endpoints.transport import Retry, parse_url

logger = logging.getLogger(__name__)
TIMEOUT_SECONDS = 10.0
"""How long a receiver has to answer."""
MAX_ANSWER_BYTES = 2**20
MAX_PARALLEL = 8
MAX_DUE = 100
"""How many due deliveries are read at a time; other workers take some of them."""
LEASE_TIME = timedelta(minutes=1)
"""Far above SECONDS, so that no worker sends what another one is sending."""
RETRY_DELAYS = [timedelta(minutes=m) for m in (1, 5, 30, 120, 480)]
"""The waits after the first failed try and those after it."""
MAX_FAILURE_TIME = timedelta(days=3)
"""When nothing has arrived for this long, a webhook is switched off."""
GONE_STATUS = 410  # "do not send here any more", says the specification
LATE = timedelta(minutes=15)
"""How far events are looked for again: a row may be committed this long after its time."""
RETENTION_TIME = timedelta(days=30)
"""How long the log has a delivery."""
SWITCHED_OFF = gettext_noop("The webhook was switched off.")  # stored, so in English
NO_RETRY = Retry(lost=False, statuses=frozenset())
State = Delivery.State


def note_events() -> int:
    """Store a delivery of each new event for each webhook that may receive it; return how many.

    1. Find the events since the webhooks were last checked.
    2. Leave out those that a webhook did not subscribe to, that are already stored, and
       that its owner may not know.
    3. Store the others, and the time up to which each webhook was checked.

    No lock: if another worker has stored a delivery in between, the unique key rejects the
    second.
    """
    now = timezone.now()
    hooks = list(Webhook.objects.filter(on_since__isnull=False).select_related("user"))
    if not hooks:
        return 0
    events = find_events(min(_find_start(hook) for hook in hooks))
    events_of = {hook: [event for event in events if _is_subscribed(hook, event)] for hook in hooks}
    keys = {event.key for event in chain.from_iterable(events_of.values())}
    noted_rows = Delivery.objects.filter(webhook__in=hooks, key__in=keys)
    noted_keys = set(noted_rows.values_list("webhook", "key"))
    new_deliveries = []
    for hook, own_events in events_of.items():
        for event in own_events:
            # Permissions cost queries, so they are asked last.
            if (hook.pk, event.key) not in noted_keys and may_know_event(
                hook.user, event.event, event.task, event.submission
            ):
                new_deliveries.append(Delivery(webhook=hook, due_at=now, **vars(event)))
    Delivery.objects.bulk_create(new_deliveries, ignore_conflicts=True)
    Webhook.objects.filter(pk__in=[hook.pk for hook in hooks]).update(looked_to=now)
    return len(new_deliveries)


def _find_start(hook: Webhook) -> datetime:
    """Return the time from which to look for events, not before the webhook was switched on."""
    assert hook.on_since
    return max(hook.on_since, (hook.looked_to or hook.on_since) - LATE)


def _is_subscribed(hook: Webhook, event: EventRecord) -> bool:
    """Return whether a webhook subscribes to an event, by its time, kind and task."""
    in_time = event.happened_at >= _find_start(hook)
    return in_time and event.event in hook.events and hook.task_id in (None, event.task.pk)


@dataclass(frozen=True)
class WebhookReply:
    """A receiver's response; status is None if there was none.

    error: why the try failed; empty if it succeeded.
    """

    status: int | None
    error: str = ""


def send_due() -> int:
    """Send some of the due deliveries in parallel; return how many were claimed."""
    claimed_deliveries = list(islice(_claim_due(), MAX_PARALLEL))
    # The threads only wait for receivers; all rows are read and written by this one.
    with ThreadPoolExecutor(MAX_PARALLEL) as pool:
        replies = list(pool.map(_post, claimed_deliveries))
    for delivery, reply in zip(claimed_deliveries, replies, strict=True):
        _note_reply(delivery, reply)
    return len(claimed_deliveries)


def _claim_due() -> Iterator[Delivery]:
    """Claim due deliveries one by one, and yield those whose event the owner may know."""
    now = timezone.now()
    due = Delivery.objects.filter(
        state=State.WAITING, due_at__lte=now, webhook__on_since__isnull=False
    )
    for pk in list(due.order_by("due_at").values_list("pk", flat=True)[:MAX_DUE]):
        delivery = claim_delivery(pk)
        if delivery is None:
            continue
        # Asked again before each try: people lose roles, and tasks are hidden.
        if may_know_event(
            delivery.webhook.user, delivery.event, delivery.task, delivery.submission
        ):
            yield delivery
        else:
            _end_try(delivery, state=State.WITHHELD, data={})


def claim_delivery(pk: UUID) -> Delivery | None:
    """Claim a delivery until its lease ends and return it; None if it is not due.

    No lock: one conditional update.
    """
    now, token = timezone.now(), uuid4()
    # The update moves `due_at` on, so that it succeeds in one of several workers.
    due = Delivery.objects.filter(pk=pk, state=State.WAITING, due_at__lte=now)
    if not due.update(due_at=now + LEASE_TIME, lease_token=token, tries=F("tries") + 1):
        return None
    rows = Delivery.objects.select_related("webhook__user", "task", "submission__task")
    return rows.filter(pk=pk, lease_token=token).first()


def send_first_test(webhook: Webhook) -> Delivery | None:
    """Send a test to a new address, immediately; None if its owner has sent too many.

    The test is not retried and does not count as a failure, because the receiver may not
    know the secret yet. Call it outside transactions: it may take TIMEOUT_SECONDS.
    """
    try:
        test = make_test(webhook=webhook)
    except Refused:
        return None
    # A worker that looks in this moment may claim it first, and then notes the answer.
    delivery = claim_delivery(test.pk)
    if delivery:
        reply = _post(delivery)
        state = State.GIVEN_UP if reply.error else State.SENT
        _end_try(delivery, state=state, **_describe_try(reply))
        test.refresh_from_db()
    return test


def _post(delivery: Delivery) -> WebhookReply:
    """Post a signed delivery to a checked address, within `TIMEOUT_SECONDS`.

    Accesses no database.
    """
    id, now = str(delivery.pk), int(timezone.now().timestamp())
    happened_at = delivery.happened_at.isoformat()
    payload = {"type": delivery.event, "timestamp": happened_at, "data": delivery.data}
    body = json.dumps(payload).encode()
    try:
        secret = decrypt(delivery.webhook.secret)
    except Unreadable as error:
        return WebhookReply(None, f"It cannot be signed. {error} Make a new secret.")
    headers = {
        "webhook-id": id,
        "webhook-timestamp": str(now),
        "webhook-signature": compute_signature(secret, id=id, timestamp=now, body=body),
    }
    try:
        reply = SHARED_TRANSPORT.request(
            "POST",
            parse_url(delivery.webhook.url),
            seconds=TIMEOUT_SECONDS,
            max_bytes=MAX_ANSWER_BYTES,
            allowed=tuple(settings.WEBHOOK_PRIVATE_HOSTS),
            secret=None,
            payload=body,
            retry=NO_RETRY,
            headers=[(name.encode(), value.encode()) for name, value in headers.items()],
        )
    except EndpointError as error:
        return WebhookReply(None, str(error).replace("The target", "The receiver"))
    if 200 <= reply.status < 300:
        return WebhookReply(reply.status)
    words = read_message(reply.body)
    ending = f": {words}" if words else "."
    return WebhookReply(reply.status, f"It answered {reply.status}{ending}")


def _note_reply(delivery: Delivery, reply: WebhookReply) -> None:
    """Store the outcome of a try: the delivery arrived, is retried later, or is abandoned."""
    now = timezone.now()
    columns = _describe_try(reply)
    if not reply.error:
        if _end_try(delivery, state=State.SENT, **columns):
            Webhook.objects.filter(pk=delivery.webhook_id).update(failing_since=None)
        return
    # The first try and one after each wait.
    if delivery.tries > len(RETRY_DELAYS):
        _end_try(delivery, state=State.GIVEN_UP, **columns)
    else:
        _end_try(delivery, due_at=now + RETRY_DELAYS[delivery.tries - 1], **columns)
    _note_failure(delivery.webhook, reply, now)


def _describe_try(reply: WebhookReply) -> dict[str, Any]:
    """Return the column values that record a try."""
    return {"status": reply.status, "error": reply.error[:500], "tried_at": timezone.now()}


def _end_try(delivery: Delivery, **changes: Any) -> int:
    """Record the end of a try.

    Return 0 if its lease had expired and another worker has claimed the delivery.
    """
    # The token of this claim: after its lease another worker has written its own.
    claimed_rows = Delivery.objects.filter(
        pk=delivery.pk, state=State.WAITING, lease_token=delivery.lease_token
    )
    return claimed_rows.update(lease_token=None, **changes)


@transaction.atomic
def _note_failure(hook: Webhook, reply: WebhookReply, now: datetime) -> None:
    """Record when failures began; switch the webhook off after a 410, or after days of failures.

    Emails the owner then. No lock: the worker whose update switches it off sends the email.
    """
    # The first failure's time stays, as the filter finds no later one.
    Webhook.objects.filter(pk=hook.pk, failing_since=None).update(failing_since=now)
    # Read again, as another worker may have delivered something since.
    failing = Webhook.objects.filter(pk=hook.pk, failing_since__lte=now - MAX_FAILURE_TIME).exists()
    if (failing or reply.status == GONE_STATUS) and switch_off_webhook(hook, SWITCHED_OFF):
        transaction.on_commit(partial(_mail_switched_off, hook, reply))


def _mail_switched_off(hook: Webhook, reply: WebhookReply) -> None:
    """Email a webhook's owner that it was switched off, and why."""

    def write() -> tuple[str, str]:
        page = f"{settings.SITE_URL}/account/webhooks/"
        values = {"webhook": hook, "error": reply.error, "url": page}
        return _("Your webhook was switched off"), render_to_string("webhooks/mail.txt", values)

    subject, text = write_in_language_of(hook.user, write)
    try:
        send_mail(subject, text, None, [hook.user.email])
    except Exception:  # mail servers fail in many ways; the page says it too
        logger.exception("No mail could be sent about %s", hook)


def purge_deliveries() -> int:
    """Delete deliveries older than `RETENTION_TIME`; return how many rows."""
    return Delivery.objects.filter(created_at__lt=timezone.now() - RETENTION_TIME).delete()[0]
