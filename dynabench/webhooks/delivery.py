"""Deliveries of events to webhooks: one per event, which is claimed, sent and recorded."""

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

from core.accounts.languages import write_in_user_language
from core.data.encryption import UnreadableSecret, decrypt
from core.errors import Refused
from dynabench.webhooks.events import EventRecord, find_events, may_know_event
from dynabench.webhooks.models import Delivery, Webhook
from dynabench.webhooks.services import store_test, switch_off_webhook
from dynabench.webhooks.signing import compute_signature
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.client import SHARED_TRANSPORT
from tasks.targets.endpoints.server_words import read_message
from tasks.targets.endpoints.transport import RetryPolicy, parse_url

logger = logging.getLogger(__name__)
TIMEOUT_SECONDS = 10.0
"""How many seconds a receiver has to respond."""
MAX_ANSWER_BYTES = 2**20
MAX_PARALLEL_POSTS = 8
MAX_DUE_DELIVERIES = 100
"""How many due deliveries to read at a time. Other workers may claim some of them."""
LEASE_TIME = timedelta(minutes=1)
"""How long a claim lasts: far longer than TIMEOUT_SECONDS, so that nothing is sent twice."""
RETRY_DELAYS = [timedelta(minutes=m) for m in (1, 5, 30, 120, 480)]
"""The delays after the first failed try and each later one."""
MAX_FAILURE_TIME = timedelta(days=3)
"""How long all deliveries must have failed for a webhook to be switched off."""
GONE_STATUS = 410  # "do not send here any more", says the specification
LATE_TIME = timedelta(minutes=15)
"""How far back to look for events again: a row may be committed that long after its time."""
RETENTION_TIME = timedelta(days=30)
"""How long deliveries stay in the log."""
SWITCHED_OFF_MESSAGE = gettext_noop("The webhook was turned off.")  # stored, so in English
NO_RETRY = RetryPolicy(on_lost_connection=False, statuses=frozenset())
State = Delivery.State


def store_new_deliveries() -> int:
    """Store a delivery of each new event for each webhook that may get it; return how many.

    1. Find the events since the webhooks were last checked.
    2. Leave out events that a webhook did not subscribe to, that are already stored, or that
       its owner may not know.
    3. Store the others, and the time up to which each webhook was checked.

    Takes no lock: if another worker has stored a delivery in between, the unique key rejects
    the second one.
    """
    now = timezone.now()
    hooks = list(Webhook.objects.filter(on_since__isnull=False).select_related("user"))
    if not hooks:
        return 0
    events = find_events(min(_find_start(hook) for hook in hooks))
    events_by_hook = {
        hook: [event for event in events if _is_subscribed(hook, event)] for hook in hooks
    }
    keys = {event.key for event in chain.from_iterable(events_by_hook.values())}
    noted_rows = Delivery.objects.filter(webhook__in=hooks, key__in=keys)
    noted_keys = set(noted_rows.values_list("webhook", "key"))
    new_deliveries = []
    for hook, own_events in events_by_hook.items():
        for event in own_events:
            # Permissions cost queries, so they are asked last.
            if (hook.pk, event.key) not in noted_keys and may_know_event(
                hook.user, event.event, event.task, event.submission
            ):
                new_deliveries.append(Delivery(webhook=hook, due_at=now, **vars(event)))
    Delivery.objects.bulk_create(new_deliveries, ignore_conflicts=True)
    # Last: after a failure the same events are looked at again, and none is left out.
    Webhook.objects.filter(pk__in=[hook.pk for hook in hooks]).update(looked_to=now)
    return len(new_deliveries)


def _find_start(hook: Webhook) -> datetime:
    """Return the time from which to look for events, not before the webhook was switched on."""
    assert hook.on_since
    return max(hook.on_since, (hook.looked_to or hook.on_since) - LATE_TIME)


def _is_subscribed(hook: Webhook, event: EventRecord) -> bool:
    """Return whether a webhook subscribes to an event, by its time, kind and task."""
    is_in_time = event.happened_at >= _find_start(hook)
    return is_in_time and event.event in hook.events and hook.task_id in (None, event.task.pk)


@dataclass(frozen=True)
class WebhookReply:
    """A receiver's response to a delivery.

    status: None if there was no response. error: why the try failed; "" if it succeeded.
    """

    status: int | None
    error: str = ""


def send_due_deliveries() -> int:
    """Send some of the due deliveries in parallel; return how many were claimed."""
    claimed_deliveries = list(islice(_claim_due_deliveries(), MAX_PARALLEL_POSTS))
    # The threads only wait for receivers; all rows are read and written by this one.
    with ThreadPoolExecutor(MAX_PARALLEL_POSTS) as pool:
        replies = list(pool.map(_post, claimed_deliveries))
    for delivery, reply in zip(claimed_deliveries, replies, strict=True):
        _note_reply(delivery, reply)
    return len(claimed_deliveries)


def _claim_due_deliveries() -> Iterator[Delivery]:
    """Claim due deliveries one by one; yield the ones whose event the owner may know.

    The others are withheld and never sent.
    """
    now = timezone.now()
    due_deliveries = Delivery.objects.filter(
        state=State.WAITING, due_at__lte=now, webhook__on_since__isnull=False
    )
    for pk in list(
        # The oldest first, because more may be due than one call sends.
        due_deliveries.order_by("due_at").values_list("pk", flat=True)[:MAX_DUE_DELIVERIES]
    ):
        delivery = claim_delivery(pk)
        if delivery is None:
            continue
        # Asked again before each try: people lose roles, and tasks are hidden.
        if may_know_event(
            delivery.webhook.user, delivery.event, delivery.task, delivery.submission
        ):
            yield delivery
        else:
            # Without the data, which the owner may no longer know.
            _end_try(delivery, state=State.WITHHELD, data={})


def claim_delivery(pk: UUID) -> Delivery | None:
    """Claim a delivery until its lease ends and return it; None if it is not due.

    Takes no lock: one conditional update.
    """
    now, token = timezone.now(), uuid4()
    # The update moves `due_at` on, so that it succeeds in one of several workers.
    due_deliveries = Delivery.objects.filter(pk=pk, state=State.WAITING, due_at__lte=now)
    if not due_deliveries.update(due_at=now + LEASE_TIME, lease_token=token, tries=F("tries") + 1):
        return None
    rows = Delivery.objects.select_related("webhook__user", "task", "submission__task")
    return rows.filter(pk=pk, lease_token=token).first()


def send_first_test(webhook: Webhook) -> Delivery | None:
    """Send a test to a new webhook immediately; return None if its owner has sent too many.

    The test is not retried and does not count as a failure, because the receiver may not
    know the secret yet. Call it outside transactions, because it may take TIMEOUT_SECONDS.
    """
    try:
        test_delivery = store_test(webhook=webhook)
    except Refused:
        return None
    # A worker that looks in this moment may claim it first, and then notes the answer.
    delivery = claim_delivery(test_delivery.pk)
    if delivery:
        reply = _post(delivery)
        state = State.GIVEN_UP if reply.error else State.SENT
        _end_try(delivery, state=state, **_describe_try(reply))
        test_delivery.refresh_from_db()
    return test_delivery


def _post(delivery: Delivery) -> WebhookReply:
    """Post a signed delivery to a checked address, within TIMEOUT_SECONDS; return the reply.

    Does not access the database.
    """
    id, now = str(delivery.pk), int(timezone.now().timestamp())
    happened_at = delivery.happened_at.isoformat()
    payload = {"type": delivery.event, "timestamp": happened_at, "data": delivery.data}
    body = json.dumps(payload).encode()
    try:
        secret = decrypt(delivery.webhook.secret)
    except UnreadableSecret as error:
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
            allowed_hosts=tuple(settings.WEBHOOK_PRIVATE_HOSTS),
            secret=None,
            payload=body,
            retry=NO_RETRY,
            headers=[(name.encode(), value.encode()) for name, value in headers.items()],
        )
    except EndpointError as error:
        return WebhookReply(None, str(error).replace("The target", "The receiver"))
    if 200 <= reply.status < 300:
        return WebhookReply(reply.status)
    message = read_message(reply.body)
    ending = f": {message}" if message else "."
    return WebhookReply(reply.status, f"It answered {reply.status}{ending}")


def _note_reply(delivery: Delivery, reply: WebhookReply) -> None:
    """Store the outcome of a try: the delivery arrived, will be retried, or is given up."""
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
    """Record when failures began. Switch the webhook off after a 410, or after days of failures.

    If it is switched off, email the owner. Takes no lock: the worker whose update switches it off
    sends the email.
    """
    # The first failure's time stays, as the filter finds no later one.
    Webhook.objects.filter(pk=hook.pk, failing_since=None).update(failing_since=now)
    # Read again, as another worker may have delivered something since.
    has_failed_for_days = Webhook.objects.filter(
        pk=hook.pk, failing_since__lte=now - MAX_FAILURE_TIME
    ).exists()
    if (has_failed_for_days or reply.status == GONE_STATUS) and switch_off_webhook(
        hook, SWITCHED_OFF_MESSAGE
    ):
        transaction.on_commit(partial(_mail_switched_off, hook, reply))


def _mail_switched_off(hook: Webhook, reply: WebhookReply) -> None:
    """Email a webhook's owner that it was switched off, and why."""

    def write_mail() -> tuple[str, str]:
        page = f"{settings.SITE_URL}/account/webhooks/"
        values = {"webhook": hook, "error": reply.error, "url": page}
        return _("We turned off your webhook"), render_to_string("webhooks/mail.txt", values)

    subject, text = write_in_user_language(hook.user, write_mail)
    try:
        send_mail(subject, text, None, [hook.user.email])
    except Exception:  # mail servers fail in many ways; the page says it too
        logger.exception("The mail about %s could not be sent", hook)


def purge_deliveries() -> int:
    """Delete deliveries older than RETENTION_TIME; return how many were deleted."""
    return Delivery.objects.filter(created_at__lt=timezone.now() - RETENTION_TIME).delete()[0]
