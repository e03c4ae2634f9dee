"""Webhooks with a real receiver, and what its program checks, for tests of who is told what."""

import base64
import hashlib
import hmac
import json

import pytest
from django.utils import timezone

from dynabench.webhooks.models import Webhook
from dynabench.webhooks.services import create_webhook
from leaderboard.models import Snapshot
from tasks.models import Task
from tests.unit.tasks.endpoints.conftest import serve  # noqa: F401

HOOKS = "/account/webhooks/"
ALL = [event for event in Webhook.Event if event != Webhook.Event.NOTICE_BEGAN]


@pytest.fixture(autouse=True)
def _site(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    settings.SITE_URL = "https://site.example"
    settings.WEBHOOK_PRIVATE_HOSTS = ["127.0.0.1"]


@pytest.fixture
def receiver(serve):  # noqa: F811
    """A program that answers with `statuses` in turn, and with the last one for ever."""

    def start(*statuses, **headers):
        left = list(statuses)

        def behave(handler, seen):
            handler.send({}, left.pop(0) if len(left) > 1 else left[0], **headers)

        return serve(behave)

    return start


@pytest.fixture
def hook(alice, receiver):
    """Alice's webhook for everything, and its receiver, which says yes."""
    server = receiver(200)
    made, secret = create_webhook(user=alice, url=f"{server.url}/told?x=1", events=ALL)
    made.server, made.key = server, secret
    return made


def snapshot(task, number=1):
    """By our clock: SQLite's knows milliseconds only, and may lie before a webhook just made."""
    now = timezone.now()
    return Snapshot.objects.create(task=task, number=number, table={}, sha256="0" * 64, made_at=now)


def hide(nli):
    Task.objects.update(is_visible=False)


def verified(seen, secret, now):
    """The body, as a library of the specification would give it to the receiver's program."""
    said = {name.lower(): value for name, value in seen.headers.items()}
    assert abs(now - int(said["webhook-timestamp"])) < 300
    body = json.dumps(seen.body).encode()
    text = f"{said['webhook-id']}.{said['webhook-timestamp']}.".encode() + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    right = "v1," + base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()
    assert said["webhook-signature"] == right
    assert said["content-type"] == "application/json"
    return seen.body
