"""A made-up `Authorization` header had bodies of strangers read, and spooled, by every page.

Who sends is decided by the session, and on the API by a token that holds.
"""

import io
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.conf import settings
from django.urls import URLPattern, get_resolver
from django.utils import timezone

from core.accounts.models import ApiToken
from core.accounts.tokens import create_token
from evaluation.test_sets.forms import MAX_FILE_BYTES
from tests.support.factories import RoundFactory, TaskFactory

LARGE = 10 * 2**20
BOGUS = ("Bearer bogus", "Bearer", "Basic YTpi", "Token x", "bearer dyna_" + "x" * 43)
SAMPLES = {
    "slug": "nli", "str": "nli", "int": "1", "uuid": "12345678-1234-5678-1234-567812345678",
    "path": "x",
}  # fmt: skip
FORM = "multipart/form-data; boundary=x"


class Unread(io.BytesIO):
    """A body that nobody may read."""

    def read(self, *_):
        raise AssertionError("it was read")

    readline = read


def addresses(patterns=None, before="/") -> Iterator[str]:
    """Each address of the site, with something in each of its places."""
    for one in get_resolver().url_patterns if patterns is None else patterns:
        route = str(one.pattern)
        for name, kind in one.pattern.converters.items():
            sample = SAMPLES.get(type(kind).__name__.removesuffix("Converter").lower(), "nli")
            route = route.replace(f"<{name}>", sample)
            for word in SAMPLES:
                route = route.replace(f"<{word}:{name}>", sample)
        if isinstance(one, URLPattern):
            yield before + route
        else:
            yield from addresses(one.url_patterns, before + route)


def send(client, path, size=LARGE, **more):
    """A POST that says how long its body is, and fails when a byte of it is read."""
    kind = "application/json" if path.startswith("/api/") else FORM
    told = {"wsgi.input": Unread(), "CONTENT_LENGTH": str(size), "CONTENT_TYPE": kind, **more}
    return client.post(path, b"", content_type=kind, **told)


@pytest.fixture
def stranger(client, db):
    """A browser that has a CSRF cookie and nothing else."""
    client.get("/accounts/login/")
    assert "csrftoken" in client.cookies
    client.handler.enforce_csrf_checks = True
    return client


def test_no_address_reads_a_large_body_of_a_stranger(stranger):
    TaskFactory(code="nli")
    asked = [
        path for path in addresses() if "(" not in path and "<" not in path and "^" not in path
    ]
    assert len(asked) > 400
    for path in asked:
        answer = send(stranger, path, HTTP_AUTHORIZATION=BOGUS[0])
        assert answer.status_code < 500, path
        assert answer.status_code >= 400 or path.startswith("/static"), path


@pytest.mark.parametrize("header", BOGUS)
@pytest.mark.parametrize(
    "path",
    [
        "/t/nli/submit/",
        "/own/nli/rounds/1/contexts/",
        "/own/nli/evaluation-sets/new/",
        "/t/nli/write/",
        "/api/v1/tasks/nli/rounds/1/contexts/",
        "/api/v1/tasks/nli/media/",
    ],
)
def test_a_made_up_header_makes_nobody_known(header, path, stranger):
    RoundFactory(task=TaskFactory(code="nli"))
    assert send(stranger, path, HTTP_AUTHORIZATION=header).status_code in (401, 413)


@pytest.fixture
def token(alice):
    scopes = list(ApiToken.Scope)
    return create_token(user=alice, name="t", scopes=scopes, days=9)


def test_tokens_count_on_the_api_while_they_hold(client, token, alice):
    row, key = token
    RoundFactory(task=TaskFactory(code="nli"))
    api, page = "/api/v1/tasks/nli/rounds/1/contexts/", "/own/nli/evaluation-sets/new/"
    held = {"HTTP_AUTHORIZATION": f"Bearer {key}"}
    with pytest.raises(AssertionError, match="it was read"):
        send(client, api, **held)
    assert send(client, api, 2**40, **held).status_code == 413
    assert send(client, page, **held).status_code == 413
    row.expires_at = timezone.now() - timedelta(seconds=1)
    row.save()
    assert send(client, api, **held).json()["error"]["code"] == "authentication_failed"
    row.expires_at += timedelta(days=1)
    row.save()
    alice.is_active = False
    alice.save()
    assert send(client, api, **held).status_code == 401
    row.delete()
    assert send(client, api, **held)["WWW-Authenticate"] == "Bearer"


def test_one_who_signed_in_has_the_limit_of_each_address(as_alice, alice):
    TaskFactory(code="nli").members.create(user=alice, role="owner")
    for path, most in (
        ("/own/nli/evaluation-sets/new/", MAX_FILE_BYTES),
        ("/accounts/email/", 2**20),
    ):
        assert send(as_alice, path, 2 * most + 2**24).status_code == 413
        with pytest.raises(AssertionError, match="it was read"):
            send(as_alice, path, most)


@pytest.mark.parametrize("length", ["", "0", "5"])
def test_a_length_that_lies_brings_no_more_than_it_says(length, stranger):
    """WSGI gives an application the length that was announced, or refuses chunks."""
    body = b"x" * LARGE
    answer = stranger.generic(
        "POST", "/accounts/login/", body, FORM, CONTENT_LENGTH=length, HTTP_AUTHORIZATION=BOGUS[0]
    )
    assert answer.status_code in (400, 403)
    assert not list(settings.SPOOL.iterdir())
    chunked = send(stranger, "/t/nli/submit/", "", HTTP_TRANSFER_ENCODING="chunked")
    assert chunked.status_code == 411


def test_a_body_that_does_not_come_is_no_fault_of_ours(as_alice, alice):
    class Slow(io.BytesIO):
        def read(self, *_):
            raise ConnectionResetError(104, "The client is too slow")

    TaskFactory(code="nli").members.create(user=alice, role="owner")
    sent = {"wsgi.input": Slow(), "CONTENT_LENGTH": "100"}
    answer = as_alice.post("/t/nli/write/", b"", content_type="text/plain", **sent)
    assert answer.status_code < 500
