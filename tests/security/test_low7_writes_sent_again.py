"""Every write of the API may be sent again with its key, and is done once."""

import pytest

from core.accounts.idempotency import KEY_HEADER
from core.accounts.models import ApiToken, IdempotentAnswer
from dynabench.api import CachedSchemaGenerator
from dynabench.webhooks.models import Webhook
from tests.support.factories import PASSWORD

pytestmark = pytest.mark.django_db
WRITES = {"post", "put", "patch", "delete"}
OTHERWISE = {
    "uploads_put": "a piece, which may be sent again as it is",
    "models_estimate": "it stores nothing",
}
HOOK = {"url": "https://a.test", "events": ["round.closed"]}
TOKEN = {"name": "t", "scopes": ["read"], "days": 9}


def test_every_write_takes_a_key():
    paths = CachedSchemaGenerator(api_version="v1").get_schema(public=True)["paths"]
    without = {
        operation["operationId"]
        for operations in paths.values()
        for method, operation in operations.items()
        if method in WRITES
        and KEY_HEADER not in {one["name"] for one in operation.get("parameters", ())}
    }
    assert without == OTHERWISE.keys()


def send(client, door, body, key="k"):
    return client.post(door, body, "application/json", headers={KEY_HEADER: key})


@pytest.fixture
def knows(as_alice):
    as_alice.post("/accounts/reauthenticate/", {"password": PASSWORD})
    return as_alice


@pytest.mark.parametrize(
    ("door", "body", "kind", "secret"),
    [
        ("/api/v1/webhooks/", HOOK, Webhook, "secret"),
        ("/api/v1/tokens/", TOKEN, ApiToken, "key"),
    ],
)
def test_what_is_made_with_a_secret_is_made_once(knows, door, body, kind, secret):
    first, again = send(knows, door, body), send(knows, door, body)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert again["Idempotent-Replayed"] == "true"
    assert kind.objects.count() == 1
    assert first.json()[secret] not in IdempotentAnswer.objects.get().body


def test_a_secret_is_renewed_once(knows):
    hook = send(knows, "/api/v1/webhooks/", HOOK).json()["id"]
    door = f"/api/v1/webhooks/{hook}/secret/"
    first = send(knows, door, {}, "other").json()["secret"]
    assert send(knows, door, {}, "other").json()["secret"] == first
    assert send(knows, door, {}, "third").json()["secret"] != first


def test_an_answer_that_cannot_be_read_any_more_is_refused(knows):
    send(knows, "/api/v1/tokens/", TOKEN)
    IdempotentAnswer.objects.update(body="x")
    assert send(knows, "/api/v1/tokens/", TOKEN).json()["error"]["code"] == "key_reused"


def test_a_refusal_for_want_of_the_password_is_not_kept(as_alice):
    assert send(as_alice, "/api/v1/tokens/", TOKEN).status_code == 403
    as_alice.post("/accounts/reauthenticate/", {"password": PASSWORD})
    assert send(as_alice, "/api/v1/tokens/", TOKEN).status_code == 201
