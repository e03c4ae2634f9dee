"""Tokens, scopes, errors, limits and repeated writes: what every address of the API shares."""

from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.test import APIClient
from rest_framework.views import APIView

from core.accounts.models import ApiToken, IdempotentAnswer, LogEntry
from core.accounts.tokens import create_token, hash_key
from core.web.api import _group_by_field, read
from tasks.models import TaskMember
from tests.support.api_errors import error
from tests.support.factories import PASSWORD, RoundFactory

ME = "/api/v1/me/"
TOKENS = "/api/v1/tokens/"


@pytest.fixture
def knows(as_alice):
    """Alice's browser, in which she gave her password a moment ago."""
    as_alice.post("/accounts/reauthenticate/", {"password": PASSWORD})
    return as_alice


def test_a_token_says_whose_it_is_and_when_it_ends(api, alice):
    answer = api.get(ME).json()
    assert answer["pseudonym"] == alice.annotator.pseudonym
    assert answer["token"]["scopes"] == ["read", "annotate", "submit", "own"]
    assert alice.email not in str(answer)


def test_only_the_digest_of_a_key_is_kept(alice):
    token, key = create_token(user=alice, name="laptop", scopes=["read"], days=5)
    row = ApiToken.objects.values().get(pk=token.pk)
    assert key not in str(row)
    assert row["digest"] == hash_key(key)
    assert row["prefix"] == key[:12]
    assert timedelta(days=4) < token.expires_at - timezone.now() < timedelta(days=6)
    assert key not in str(list(LogEntry.objects.values()))


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"name": "  "}, "name"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["root"]}, "scopes.0"),
        ({"days": 0}, "days"),
        ({"days": 367}, "days"),
    ],
)
def test_what_a_token_cannot_be(client, alice, asked, field):
    client.force_login(alice)
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    body = {"name": "a", "scopes": ["read"], "days": 1, **asked}
    response = client.post(TOKENS, body, content_type="application/json")
    assert response.status_code == 422
    assert [*error(response)["fields"]] == [field]
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize("header", ["Bearer dyna_unknown", "Bearer", "Bearer a b"])
def test_an_unknown_key_is_401(db, header):
    response = APIClient().get(ME, HTTP_AUTHORIZATION=header)
    assert response.status_code == 401
    assert response["WWW-Authenticate"] == "Bearer"


def test_without_a_token_it_is_401(anybody, db):
    response = anybody.get(ME)
    assert (response.status_code, error(response)["code"]) == (401, "not_authenticated")


def test_a_key_in_the_address_is_not_looked_at(anybody, alice):
    _, key = create_token(user=alice, name="a", scopes=["read"], days=1)
    assert anybody.get(ME, {"token": key, "api_key": key, "Authorization": key}).status_code == 401


def test_an_ended_token_says_when(api):
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(days=3))
    response = api.get(ME)
    assert response.status_code == 401
    assert "expired on" in error(response)["message"]


def test_a_switched_off_account_has_no_token(api, alice):
    alice.is_active = False
    alice.save(update_fields=["is_active"])
    assert api.get(ME).status_code == 401


def test_a_scope_that_is_missing_is_named(api_of, alice):
    client = api_of(alice, "submit")
    response = client.get(ME)
    assert (response.status_code, error(response)["code"]) == (403, "scope")
    assert "scope read" in error(response)["message"]


def test_a_session_makes_a_token_that_works(as_alice):
    asked = {"name": "laptop", "scopes": ["read", "submit"]}
    as_alice.post("/accounts/reauthenticate/", {"password": PASSWORD})
    response = as_alice.post(TOKENS, asked, content_type="application/json")
    assert response.status_code == 201
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {response.json()['key']}")
    assert client.get(ME).json()["token"]["scopes"] == ["read", "submit"]
    listed = client.get(TOKENS).json()["results"]
    assert [one["name"] for one in listed] == ["laptop"]
    assert "key" not in listed[0]


def test_a_session_needs_the_csrf_token(alice):
    client = APIClient(enforce_csrf_checks=True)
    client.force_login(alice)
    assert client.post(TOKENS, {"name": "a", "scopes": ["read"]}).status_code == 403
    assert not ApiToken.objects.exists()


def test_a_token_makes_no_token(api):
    response = api.post(TOKENS, {"name": "more", "scopes": ["own"]})
    assert (response.status_code, error(response)["code"]) == (403, "session_only")


def test_what_does_not_validate_is_named_by_field(knows):
    response = knows.post(TOKENS, {"name": "", "scopes": ["x"]}, content_type="application/json")
    assert response.status_code == 422
    assert set(error(response)["fields"]) == {"name", "scopes.0"}


class _Inner(serializers.Serializer):
    license = serializers.CharField(required=False)


class _Outer(serializers.Serializer):
    name = serializers.CharField()
    made_at = serializers.DateTimeField(read_only=True)
    card = _Inner(required=False)
    rows = _Inner(many=True, required=False)
    free = serializers.DictField(required=False)


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"nmae": "x"}, "nmae"),
        ({"made_at": "2026-01-01T00:00:00Z"}, "made_at"),
        ({"card": {"licence": "MIT"}}, "card.licence"),
        ({"rows": [{"license": "MIT"}, {"licence": "MIT"}]}, "rows.1.licence"),
    ],
)
def test_a_field_that_nobody_reads_is_refused_with_those_that_there_are(rf, told, field):
    request = APIView().initialize_request(rf.get("/"))
    request._full_data = {"name": "x", **told}
    with pytest.raises(ValidationError) as caught:
        read(_Outer, request)
    ((name, (message,)),) = _group_by_field(caught.value.detail).items()
    assert name == field
    assert ("license" if "." in field else "card") in message


def test_what_is_free_and_what_is_no_object_are_as_before(rf):
    request = APIView().initialize_request(rf.get("/"))
    request._full_data = {"name": "x", "free": {"any": 1}, "card": {}, "rows": []}
    assert read(_Outer, request)["free"] == {"any": 1}
    for other in ([], {"name": "x", "card": 3}, {"name": "x", "rows": 3}):
        request._full_data = other
        with pytest.raises(ValidationError):
            read(_Outer, request)


@pytest.mark.parametrize(
    "url",
    [
        "tasks/", "me/examples/", "me/models/", "tokens/", "uploads/", "webhooks/",
        "tasks/nli/rounds/", "tasks/nli/models/", "tasks/nli/members/", "tasks/nli/targets/",
        "tasks/nli/reports/", "tasks/nli/review/", "tasks/nli/authors/", "tasks/nli/gold/",
        "tasks/nli/rounds/1/examples/", "tasks/nli/rounds/1/validations/",
        "tasks/nli/rounds/1/contexts/", "tasks/nli/leaderboard/", "tasks/nli/leaderboard/rounds/",
        "tasks/nli/leaderboard/compare/", "tasks/nli/leaderboard/forks/",
        "tasks/nli/leaderboard/snapshots/", "tasks/nli/evaluation-sets/",
    ],
)  # fmt: skip
def test_a_filter_that_nobody_reads_is_refused(api, alice, url):
    round = RoundFactory(task__code="nli", number=1)
    TaskMember.objects.create(task=round.task, user=alice, role="owner")
    answer = api.get(f"/api/v1/{url}?sate=open&page_size=5")
    assert answer.status_code == 422
    assert [*answer.json()["error"]["fields"]] == ["sate"]


def test_a_token_revokes_itself_and_no_other(api, as_alice, bobs, alice):
    other, _ = create_token(user=alice, name="other", scopes=["read"], days=1)
    own = api.get(ME).json()["token"]["id"]
    assert bobs.delete(f"{TOKENS}{own}/").status_code == 404
    assert api.delete(f"{TOKENS}{other.pk}/").status_code == 404
    assert api.delete(f"{TOKENS}{own}/").status_code == 204
    assert api.get(ME).status_code == 401
    assert as_alice.delete(f"{TOKENS}{other.pk}/").status_code == 204


def test_broken_json_and_other_formats(knows):
    broken = knows.post(TOKENS, "{", content_type="application/json")
    assert (broken.status_code, error(broken)["code"]) == (400, "parse_error")
    form = knows.post(TOKENS, {"name": "a"})
    assert (form.status_code, error(form)["code"]) == (415, "unsupported_media_type")


def test_nothing_there_is_json_too(anybody, db):
    for method in ("get", "post", "delete"):
        response = getattr(anybody, method)("/api/v1/nothing/here/")
        assert (response.status_code, error(response)["code"]) == (404, "not_found")


def test_too_many_requests_say_when_to_come_back(api, api_of, alice, bobs, monkeypatch):
    from core.web.throttles import ScopeThrottle

    monkeypatch.setattr(ScopeThrottle, "THROTTLE_RATES", {"read": "2/min", "write": "9/min"})
    answers = [api.get(ME) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert 0 < int(answers[-1]["Retry-After"]) <= 60
    assert error(answers[-1])["code"] == "throttled"
    assert api_of(alice, "read").get(ME).status_code == 429  # another token helps nobody
    assert bobs.get(ME).status_code == 200
    assert api.delete(f"{TOKENS}0/").status_code == 404  # writing is counted apart


def test_the_last_use_is_noted(api):
    assert ApiToken.objects.get().last_used_at is None
    api.get(ME)
    assert ApiToken.objects.get().last_used_at is not None


def test_a_deleted_person_has_no_tokens(alice):
    create_token(user=alice, name="a", scopes=["read"], days=1)
    IdempotentAnswer.objects.create(user=alice, key="k", digest="d", begun_at=timezone.now())
    alice.delete()
    assert not ApiToken.objects.exists()
    assert not IdempotentAnswer.objects.exists()


def test_an_error_of_ours_is_json_with_a_number(anybody, db, monkeypatch):
    monkeypatch.setattr("core.accounts.authentication.find_token", lambda key: 1 / 0)
    anybody.raise_request_exception = False
    response = anybody.get(ME, HTTP_AUTHORIZATION="Bearer dyna_x")
    assert (response.status_code, error(response)["code"]) == (500, "server_error")
    assert response["X-Request-Id"] in error(response)["message"]


def test_too_much_json_is_not_read(as_alice, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 10
    response = as_alice.post(TOKENS, {"name": "laptop"}, content_type="application/json")
    assert (response.status_code, error(response)["code"]) == (413, "too_large")


def test_json_that_nests_too_deeply_is_not_read(knows):
    response = knows.post(TOKENS, "[" * 100_000, content_type="application/json")
    assert (response.status_code, error(response)["code"]) == (400, "parse_error")
