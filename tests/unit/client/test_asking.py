"""Requests: keys, errors, tries, pages; and that both clients do the same."""

import asyncio

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynabench import DynabenchClient
from dynabench import client as errors
from dynabench.client.credentials import delete_key, find_keys_file, store_key
from dynabench.client.errors import TOO_LARGE_MESSAGE
from dynabench.client.http import MAX_PAUSE_SECONDS, compute_backoff
from tests.unit.client.conftest import bad, good

REFUSED = httpx.ConnectError("refused")


def test_where_and_with_which_key(server, client):
    server.answers.append(good({"code": "nli"}))
    assert client.task("nli") == {"code": "nli"}
    request = server.asked[0]
    assert str(request.url) == "http://127.0.0.1:8000/api/v1/tasks/nli/"
    assert request.headers["Authorization"] == "Bearer key"


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (401, "authentication_failed", errors.AuthenticationError),
        (403, "scope", errors.PermissionDenied),
        (404, "not_found", errors.NotFound),
        (400, "parse_error", errors.Invalid),
        (422, "invalid", errors.Invalid),
        (409, "refused", errors.Refused),
        (409, "quota", errors.QuotaReached),
        (429, "quota", errors.QuotaReached),
        (429, "cap", errors.RateLimited),
        (410, "closed", errors.Refused),
        (500, "error", errors.ServerError),
    ],
)
def test_a_refusal_has_a_type_and_the_servers_words(server, client, pauses, status, code, kind):
    server.answers.append(bad(status, code, "Mend it.", {"name": ["Too long.", "Mend it."]}))
    with pytest.raises(errors.DynabenchError) as caught:
        client.task("nli")
    error = caught.value
    assert type(error) is kind
    assert (error.status, error.code, error.message) == (status, code, "Mend it.")
    assert str(error) == "Mend it.\n  name: Too long."
    assert not pauses


def test_what_is_no_answer_of_ours(server, client):
    server.answers += [
        httpx.Response(200, text="<html>"),
        httpx.Response(404, text="<html>"),
        httpx.Response(418, json={"error": "no"}),
        httpx.Response(301, headers={"Location": "https://elsewhere.org/"}),
    ]
    for words in ("not a response of a Dynabench server", "404", "418", "https://elsewhere.org/"):
        with pytest.raises(errors.DynabenchError, match=words):
            client.task("nli")
    assert len(server.asked) == 4


def test_a_proxy_that_takes_no_large_bodies_is_named(server, client):
    server.answers.append(httpx.Response(413, text="<html>"))
    with pytest.raises(errors.Invalid) as caught:
        client.request("POST", "/uploads/")
    assert (caught.value.status, caught.value.message) == (413, TOO_LARGE_MESSAGE)


def test_what_is_over_soon_is_tried_again(server, client, pauses):
    server.answers += [
        bad(503, "busy", **{"Retry-After": "7"}),
        bad(429, "throttled", **{"Retry-After": "20"}),
        httpx.Response(502, text="<html>"),
        REFUSED,
        good({"code": "nli"}),
    ]
    assert client.task("nli") == {"code": "nli"}
    assert pauses[:2] == [7, 20]
    assert 0 < pauses[2] <= 2
    assert len(pauses) == 4


def test_the_last_try_ends_it(server, client, pauses):
    server.route = lambda request: REFUSED
    with pytest.raises(errors.Unreachable, match=r"http://127\.0\.0\.1:8000 cannot") as caught:
        client.task("nli")
    assert "DYNABENCH_URL" in str(caught.value)
    assert len(server.asked) == 6
    assert len(pauses) == 5
    server.route = lambda request: bad(503, "busy")
    with pytest.raises(errors.ServerError, match=r"^No\.$"):
        client.task("nli")


def test_nobody_waits_for_hours(server, client, pauses):
    seconds = MAX_PAUSE_SECONDS + 1
    server.answers.append(bad(429, "throttled", **{"Retry-After": f"{seconds:g}"}))
    with pytest.raises(errors.RateLimited) as caught:
        client.task("nli")
    assert caught.value.retry_after == seconds
    assert not pauses


def test_a_write_keeps_its_key_however_often_it_is_sent(server, client, pauses):
    server.answers += [REFUSED, bad(409, "in_progress"), good({"id": "m"}), good({"id": "m"})]
    client.publish("m")
    client.publish("m")
    keys = [request.headers["Idempotency-Key"] for request in server.asked]
    assert keys[0] == keys[1] == keys[2] != keys[3]
    assert len(pauses) == 2


@given(st.integers(0, 60))
def test_pauses_grow_to_a_limit(attempt):
    assert 0.25 <= compute_backoff(attempt) <= min(30, 0.5 * 2**attempt)


def test_pages_are_followed_at_our_server(server, client):
    server.answers += [
        good({"next": "http://inside:1/api/v1/tasks/?cursor=a%3D%3D", "results": [{"code": "a"}]}),
        good({"next": None, "results": [{"code": "b"}]}),
    ]
    assert client.tasks() == [{"code": "a"}, {"code": "b"}]
    assert server.asked[1].url.params["cursor"] == "a=="
    assert server.asked[1].url.host == "127.0.0.1"


def test_any_address_may_be_asked(server, client, pauses):
    found = {"next": None, "results": []}
    server.answers += [good(found), bad(503, "busy"), good({"id": 1}, 201), httpx.Response(204)]
    assert client.request("GET", "/groups/", params={"page_size": 5}) == found
    assert client.request("POST", "tasks/nli/rounds/", {"description": "It."}) == {"id": 1}
    assert server.body() == {"description": "It."}
    assert client.request("DELETE", "/webhooks/1/") is None
    assert str(server.asked[0].url).endswith("/api/v1/groups/?page_size=5")
    assert server.lines[1:] == ["POST /tasks/nli/rounds/"] * 2 + ["DELETE /webhooks/1/"]
    assert len(pauses) == 1
    server.answers.append(bad(409, "state", "It is closed."))
    with pytest.raises(errors.Refused, match="It is closed"):
        client.request("POST", "/tasks/nli/rounds/1/state/", {"state": "open"})


@pytest.mark.parametrize("path", ["https://elsewhere.org/", "//elsewhere.org/", "/tasks/?search=x"])
def test_an_address_is_always_one_of_our_server(server, client, path):
    server.answers.append(bad(404))
    with pytest.raises(errors.NotFound):
        client.request("GET", path)
    (request,) = server.asked
    assert request.url.host == "127.0.0.1"
    assert request.url.raw_path.endswith(path.lstrip("/").encode())


def test_the_async_client_does_the_same(server, awaiting, pauses):
    server.answers += [REFUSED, good({"code": "a"}), bad(404), good({"code": "b"})]

    async def both():
        async with awaiting:
            first = await awaiting.task("a")
            with pytest.raises(errors.NotFound):
                await awaiting.task("x")
            return first, await awaiting.task("b")

    assert asyncio.run(both()) == ({"code": "a"}, {"code": "b"})
    assert len(pauses) == 1


def test_methods_tell_what_they_are(client):
    assert client.get_results.__doc__.startswith("Return a model's scores")
    assert DynabenchClient.get_results.__doc__ == client.get_results.__doc__


def test_the_environment_says_server_and_key(monkeypatch):
    monkeypatch.setenv("DYNABENCH_URL", "https://here.org/")
    monkeypatch.setenv("DYNABENCH_API_KEY", "mine")
    client = DynabenchClient()
    assert client.server == "https://here.org"
    assert client._http.headers["Authorization"] == "Bearer mine"
    assert DynabenchClient("told")._http.headers["Authorization"] == "Bearer told"


def test_a_login_says_server_and_key():
    store_key("https://a.org", "key of a")
    store_key("https://b.org", "key of b")
    assert find_keys_file().stat().st_mode & 0o777 == 0o600
    client = DynabenchClient()
    assert (client.server, client._http.headers["Authorization"]) == (
        "https://b.org",
        "Bearer key of b",
    )
    assert DynabenchClient(url="https://a.org")._http.headers["Authorization"] == "Bearer key of a"
    assert "Authorization" not in DynabenchClient(url="https://c.org")._http.headers
    assert [delete_key("https://b.org"), delete_key("https://b.org")] == [True, False]
    assert DynabenchClient().server == "http://127.0.0.1:8000"


def test_a_damaged_file_of_keys_says_so():
    find_keys_file().parent.mkdir(parents=True)
    find_keys_file().write_text("{")
    with pytest.raises(ValueError, match=r"keys\.json is damaged"):
        DynabenchClient()


def test_an_address_needs_its_scheme():
    with pytest.raises(ValueError, match="http://"):
        DynabenchClient(url="here.org")
