"""Writes about webhooks, by their people."""

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
from dynabench.webhooks.signing import new_secret
from tasks.models import Task
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.transport import parse_url

MOST = 20  # of a person
MOST_TESTS = 10  # of a person in an hour
TEST = "webhook.test"
DELIVER = "dynabench.webhooks.jobs.deliver_due"
State = Delivery.State


@transaction.atomic
def create_webhook(
    *, user: User, url: str, events: Sequence[str], task: Task | None = None
) -> tuple[Webhook, str]:
    """A webhook, and the secret that signs its events, which nobody sees again.

    `task` is one that the person may see. Raises Refused. Locks the user, for the cap.
    """
    _check(url, events)
    User.objects.select_for_update(of=("self",), no_key=True).get(pk=user.pk)
    if user.webhooks.count() >= MOST:
        raise Refused(_("You have %(most)d webhooks. Delete one first.") % {"most": MOST})
    secret = new_secret()
    made = Webhook.objects.create(
        user=user,
        task=task,
        url=url,
        events=_in_order(events),
        secret=encrypt(secret),
        on_since=timezone.now(),
    )
    log(user, "webhook.created", made, events=made.events)
    return made, secret


@transaction.atomic
def change_webhook(
    *, webhook: Webhook, actor: User, url: str, events: Sequence[str], is_on: bool
) -> None:
    """Change the address, the events, or whether it is on; what waits goes to the new address.

    Switched on again, it gets what happens from then on. Raises Refused. No lock:
    the last change holds.
    """
    _check(url, events)
    webhook.url, webhook.events = url, _in_order(events)
    changed = ["url", "events"]
    if is_on and not webhook.is_on:
        webhook.on_since, webhook.failing_since = timezone.now(), None
        changed += ["on_since", "failing_since"]
    webhook.save(update_fields=changed)
    if not is_on:
        switch_off(webhook, gettext_noop("It was switched off."))
    log(actor, "webhook.changed", webhook, events=webhook.events, is_on=is_on)


def switch_off(webhook: Webhook, reason: str) -> bool:
    """Tell it nothing any more, not even what waits; False: it was off. No lock: one update."""
    was_on = Webhook.objects.filter(pk=webhook.pk, on_since__isnull=False).update(on_since=None)
    webhook.on_since = None
    webhook.deliveries.filter(state=State.WAITING).update(
        state=State.GIVEN_UP, lease_token=None, error=reason
    )
    return bool(was_on)


@transaction.atomic
def rotate_secret(*, webhook: Webhook, actor: User) -> str:
    """A new secret, which nobody sees again. The old one signs nothing more, not even what waits.

    No lock: the last one holds.
    """
    secret = new_secret()
    webhook.secret = encrypt(secret)
    webhook.save(update_fields=["secret"])
    log(actor, "webhook.secret_rotated", webhook)
    return secret


@transaction.atomic
def delete_webhook(*, webhook: Webhook, actor: User) -> None:
    """Remove it with its log; no lock."""
    log(actor, "webhook.deleted", webhook)
    webhook.delete()


@transaction.atomic
def send_test(*, webhook: Webhook) -> Delivery:
    """Have a queue worker send an event that says nothing. As `make_test`."""
    made = make_test(webhook=webhook)
    enqueue(DELIVER)
    return made


@transaction.atomic
def make_test(*, webhook: Webhook) -> Delivery:
    """Make the delivery of an event that says nothing. Raises Refused.

    Locks the user, for the cap: people choose the address, and it may be somebody else's.
    """
    User.objects.select_for_update(of=("self",), no_key=True).get(pk=webhook.user_id)
    _refuse_off(webhook)
    now = timezone.now()
    recent = Delivery.objects.filter(webhook__user=webhook.user_id, event=TEST)
    if recent.filter(created_at__gt=now - timedelta(hours=1)).count() >= MOST_TESTS:
        enough = _("%(most)d tests an hour are enough. Try again later.")
        raise Refused(enough % {"most": MOST_TESTS})
    return Delivery.objects.create(
        webhook=webhook,
        event=TEST,
        key=f"{TEST}:{uuid4()}",
        data={"webhook": webhook.pk},
        happened_at=now,
        due_at=now,
    )


@transaction.atomic
def send_again(*, delivery: Delivery) -> None:
    """Have what was sent or given up sent once more, under the same id. Raises Refused.

    No lock: one update, which a delivery that waits passes by.
    """
    _refuse_off(delivery.webhook)
    over = Delivery.objects.filter(pk=delivery.pk, state__in=[State.SENT, State.GIVEN_UP])
    if over.update(state=State.WAITING, due_at=timezone.now(), tries=0, error=""):
        enqueue(DELIVER)


def _refuse_off(webhook: Webhook) -> None:
    if not webhook.is_on:
        raise Refused(_("It is switched off. Switch it on first."))


def _in_order(events: Sequence[str]) -> list[str]:
    return [event for event in Webhook.Event if event in events]


def _check(url: str, events: Sequence[str]) -> None:
    if not events:
        raise Refused(_("Choose at least one event."), field="events", status=422)
    try:
        parsed = parse_url(url)
    except EndpointError as error:
        raise Refused(_(str(error)), field="url", status=422) from None
    if parsed.scheme != "https" and parsed.host not in settings.WEBHOOK_PRIVATE_HOSTS:
        raise Refused(_("The address must begin with https://."), field="url", status=422)
