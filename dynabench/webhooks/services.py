"""Writes about webhooks by their owners."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import uuid4

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from core.accounts.models import User
from core.accounts.services import log
from core.data.encryption import encrypt
from core.errors import Refused
from core.jobs.queue import enqueue
from dynabench.webhooks.models import Delivery, Webhook
from dynabench.webhooks.signing import create_secret
from tasks.models import Task
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.transport import parse_url

MAX_WEBHOOKS = 20
"""The maximum number of webhooks per person."""
MAX_TESTS = 10
"""The maximum number of tests per person and hour."""
TEST_EVENT = "webhook.test"
DELIVER_JOB = "dynabench.webhooks.jobs.deliver_due"
State = Delivery.State


@transaction.atomic
def create_webhook(
    *, user: User, url: str, events: Sequence[str], task: Task | None = None
) -> tuple[Webhook, str]:
    """Create a webhook; return it and its signing secret, which is not shown again.

    task: the only task whose events are sent; None for all tasks that the person may see. Locks the
    user, to enforce the maximum. Raises Refused.
    """
    _check_target(url, events)
    User.objects.select_for_update(of=("self",), no_key=True).get(pk=user.pk)
    if user.webhooks.count() >= MAX_WEBHOOKS:
        raise Refused(
            _("You already have %(most)d webhooks. Delete one first.") % {"most": MAX_WEBHOOKS}
        )
    secret = create_secret()
    webhook = Webhook.objects.create(
        user=user,
        task=task,
        url=url,
        events=_sort_events(events),
        secret=encrypt(secret),
        on_since=timezone.now(),
    )
    log(user, "webhook.created", webhook, events=webhook.events)
    return webhook, secret


@transaction.atomic
def change_webhook(
    *, webhook: Webhook, actor: User, url: str, events: Sequence[str], is_on: bool
) -> None:
    """Change a webhook's URL or events, or switch it on or off.

    Pending deliveries go to the new URL. A webhook that is switched on again gets only
    later events. Takes no lock: the last change wins. Raises Refused.
    """
    _check_target(url, events)
    webhook.url, webhook.events = url, _sort_events(events)
    changed_names = ["url", "events"]
    # Only a change: saving the address of one that is on must not skip events.
    if is_on and not webhook.is_on:
        webhook.on_since, webhook.failing_since = timezone.now(), None
        changed_names += ["on_since", "failing_since"]
    webhook.save(update_fields=changed_names)
    if not is_on:
        switch_off_webhook(webhook, gettext_noop("The webhook was turned off."))
    log(actor, "webhook.changed", webhook, events=webhook.events, is_on=is_on)


def switch_off_webhook(webhook: Webhook, reason: str) -> bool:
    """Switch a webhook off and give up pending deliveries; return whether it was on.

    Takes no lock: one conditional update.
    """
    # The filter tells the one of several workers that switched it off, which writes to its person.
    was_on = Webhook.objects.filter(pk=webhook.pk, on_since__isnull=False).update(on_since=None)
    webhook.on_since = None
    webhook.deliveries.filter(state=State.WAITING).update(
        state=State.GIVEN_UP, lease_token=None, error=reason
    )
    return bool(was_on)


@transaction.atomic
def rotate_secret(*, webhook: Webhook, actor: User) -> str:
    """Replace a webhook's secret and return the new one, which is not shown again.

    Pending deliveries are signed with the new secret. Takes no lock: the last secret wins.
    """
    secret = create_secret()
    webhook.secret = encrypt(secret)
    webhook.save(update_fields=["secret"])
    log(actor, "webhook.secret_rotated", webhook)
    return secret


@transaction.atomic
def delete_webhook(*, webhook: Webhook, actor: User) -> None:
    """Delete a webhook and its deliveries. Takes no lock."""
    log(actor, "webhook.deleted", webhook)
    webhook.delete()


@transaction.atomic
def send_test(*, webhook: Webhook) -> Delivery:
    """Store a test event and wake a worker. Locks and raises errors like `store_test`."""
    delivery = store_test(webhook=webhook)
    enqueue(DELIVER_JOB)
    return delivery


@transaction.atomic
def store_test(*, webhook: Webhook) -> Delivery:
    """Store the delivery of a test event, which has no content.

    Locks the user, to enforce MAX_TESTS: the URL may be somebody else's, because people choose it.
    Raises Refused.
    """
    User.objects.select_for_update(of=("self",), no_key=True).get(pk=webhook.user_id)
    _check_is_on(webhook)
    now = timezone.now()
    # Of all the person's webhooks: a new webhook brings no new tests.
    recent_tests = Delivery.objects.filter(webhook__user=webhook.user_id, event=TEST_EVENT)
    if recent_tests.filter(created_at__gt=now - timedelta(hours=1)).count() >= MAX_TESTS:
        message = _("You can send at most %(most)d tests an hour. Try again later.")
        raise Refused(message % {"most": MAX_TESTS})
    return Delivery.objects.create(
        webhook=webhook,
        event=TEST_EVENT,
        key=f"{TEST_EVENT}:{uuid4()}",
        data={"webhook": webhook.pk},
        happened_at=now,
        due_at=now,
    )


@transaction.atomic
def send_again(*, delivery: Delivery) -> None:
    """Queue a delivery again that was sent or given up, under the same id. Raises Refused.

    Takes no lock: one conditional update, which leaves a pending delivery unchanged.
    """
    _check_is_on(delivery.webhook)
    ended_deliveries = Delivery.objects.filter(
        pk=delivery.pk, state__in=[State.SENT, State.GIVEN_UP]
    )
    if ended_deliveries.update(state=State.WAITING, due_at=timezone.now(), tries=0, error=""):
        enqueue(DELIVER_JOB)


def _check_is_on(webhook: Webhook) -> None:
    """Check that a webhook is switched on. Raises Refused."""
    if not webhook.is_on:
        raise Refused(_("This webhook is off. Turn it on first."))


def _sort_events(events: Sequence[str]) -> list[str]:
    """Return the distinct events in the order of `Webhook.Event`."""
    return [event for event in Webhook.Event if event in events]


def _check_target(url: str, events: Sequence[str]) -> None:
    """Check a webhook's URL and events. Raises Refused."""
    if not events:
        raise Refused(_("Choose at least one event."), field="events", status=422)
    try:
        # The host is resolved and checked again at each delivery.
        parsed_url = parse_url(url)
    except EndpointError as error:
        raise Refused(_(str(error)), field="url", status=422) from None
    # Signatures protect what is sent, not who may read it on the way.
    if parsed_url.scheme != "https" and parsed_url.host not in settings.WEBHOOK_PRIVATE_HOSTS:
        raise Refused(_("Enter a URL that begins with https://."), field="url", status=422)
