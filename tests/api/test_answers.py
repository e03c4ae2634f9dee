"""Answers that the published schema does not say are noticed, and queries that nobody reads."""

# ruff: noqa: F811  (fixtures are named where they are used)

import json
from base64 import b64encode

import pytest
from rest_framework.test import APIClient

from core.accounts import api as accounts
from core.accounts.tokens import create_token
from tests.api.world import SCOPES
from tests.support import schema_watch
from tests.support.api_answers import api as published
from tests.support.api_answers import problems_of, template_of
from tests.support.api_errors import error
from tests.support.api_routes import address_of, routes, world  # noqa: F401

JSON = "application/json"
PAGE = {"next": None, "previous": None, "results": []}
ERROR = {"error": {"code": "a", "message": "b", "fields": {}}}


@pytest.mark.parametrize(
    ("asked", "status", "kind", "body", "is_right"),
    [
        ("GET tasks/", 200, JSON, PAGE, True),
        ("GET tasks/", 200, f"{JSON}; charset=utf-8", PAGE, True),
        ("GET tasks/", 200, JSON, {**PAGE, "more": 1}, False),
        ("GET tasks/", 200, JSON, {**PAGE, "next": "no address"}, False),
        ("GET tasks/", 200, JSON, {"results": []}, False),
        ("GET tasks/", 200, "text/html", PAGE, False),
        ("GET tasks/", 201, JSON, PAGE, False),
        ("GET tasks/", 404, JSON, ERROR, True),
        ("GET tasks/", 500, JSON, ERROR, True),
        ("GET tasks/", 404, JSON, {"detail": "Not found."}, False),
        ("GET nothing/here/", 404, JSON, ERROR, True),
        ("GET nothing/here/", 200, JSON, {}, False),
        ("DELETE tasks/", 405, JSON, ERROR, True),
        ("DELETE tokens/1/", 204, "", None, True),
        ("DELETE tokens/1/", 204, JSON, PAGE, False),
        ("GET tasks/nli/leaderboard/", 304, "", None, True),
    ],
)
def test_what_is_not_published_is_noticed(asked, status, kind, body, is_right):
    method, address = asked.split()
    sent = b"" if body is None else json.dumps(body).encode()
    assert is_right == (not problems_of(method, f"/api/v1/{address}", status, kind, sent))


def test_answers_of_views_are_looked_at(api, monkeypatch):
    monkeypatch.setattr(accounts.MeView, "get", lambda *_: accounts.Response({"new": 1}))
    api.get("/api/v1/me/")
    assert schema_watch.found
    schema_watch.found.clear()


@pytest.fixture
def owner(world):
    """The client of the owner of all that there is."""
    client = APIClient()
    key = create_token(user=world.owner, name="all", scopes=SCOPES, days=1)[1]
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {key}")
    return client


def test_a_query_that_nobody_reads_is_refused_everywhere_and_does_nothing(world, owner):
    """A `dry_run` in the address of an import would import."""
    for method, route in routes():
        if route in {"schema/", "docs/", "docs/try/"} or route.startswith("^"):
            continue
        response = getattr(owner, method.lower())(f"{address_of(world, route)}?dry_run=1")
        if response.status_code not in (401, 403, 404):
            assert [*error(response)["fields"]] == ["dry_run"], (method, route)
            assert response.status_code == 422


def test_a_page_that_cannot_be_is_refused_by_every_list(world, owner):
    """One rule: 422 that names the field."""
    cursors = ["xx", "\xff", *(b64encode(one).decode() for one in (b"o=x", b"r=x", b"abc"))]
    wrong = [("page_size", size) for size in ("abc", "0", "-5", "1001", "1" * 5000)]
    wrong += [("cursor", cursor) for cursor in cursors] + [("format", "xml"), ("pagesize", "1")]
    lists = [
        one for m, route in routes() if m == "GET" and is_list(one := address_of(world, route))
    ]
    assert len(lists) > 20
    for address in lists:
        for name, value in wrong:
            response = owner.get(address, {name: value})
            if response.status_code != 404:  # a community of somebody else
                assert [*error(response)["fields"]] == [name], (address, value)
                assert response.status_code == 422


def is_list(address):
    """Whether the schema has pages at an address."""
    operation = published()["paths"].get(template_of(address), {}).get("get", {})
    names = {one["name"] for one in operation.get("parameters", ())}
    return {"cursor", "page_size"} <= names
