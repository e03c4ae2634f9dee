"""Who gets what at every address of the API: each role with a session, each scope with a token.

A new address fails until its line is in the table. `./test --update access`
writes the lines as they are; read each of them.
"""

# ruff: noqa: F811  (fixtures are named where they are used)

import re
from pathlib import Path

import pytest
from django.db import transaction
from rest_framework.test import APIClient

from core.accounts.tokens import create_token
from tasks.models import Task
from tests.api.world import SCOPES
from tests.support.api_answers import api as published
from tests.support.api_answers import template_of
from tests.support.api_routes import (
    address_of,
    routes,
    world,  # noqa: F401
)
from tests.support.roles import HEAD as HEAD_OF_ROLES
from tests.support.roles import READ, ROLES, answer, check, line, members_of, plant, tells
from tests.support.snapshots import compare_with_file

KNOWN = Path(__file__).with_name("access.txt")
WHO = ["anonymous", "other", "owner", "admin", *SCOPES]  # a scope: the owner's token with only it
HEAD = " " * 7 + " ".join(f"{who:9}" for who in WHO)


@pytest.fixture
def clients(world):
    """A client for each of WHO."""
    made = {who: APIClient() for who in WHO}
    for who in ("other", "owner", "admin"):
        made[who].force_login(getattr(world, who))
    for scope in SCOPES:
        _, key = create_token(user=world.owner, name=scope, scopes=[scope], days=1)
        made[scope].credentials(HTTP_AUTHORIZATION=f"Bearer {key}")
    return made


def ask(client, method, address):
    """The status of a request with an empty body; what it did is undone."""
    with transaction.atomic():
        response = getattr(client, method.lower())(address, {} if method != "GET" else None)
        transaction.set_rollback(True)
    return response.status_code


def table(world, clients):
    """A line for each address and method."""
    lines = [HEAD]
    for method, route in routes():
        if route.startswith("^"):  # nothing is there
            continue
        found = [ask(clients[who], method, address_of(world, route)) for who in WHO]
        lines.append(f"{method:6} {' '.join(f'{one:<9}' for one in found)} {route}")
    return lines


def test_every_address_answers_everybody_as_the_table_says(world, clients):
    found = table(world, clients)
    compare_with_file(KNOWN, "\n".join(found) + "\n")


def test_the_schema_asks_for_a_token_where_one_is_needed(world):
    """An empty way to sign in means that everybody may read."""
    asked = APIClient()
    for method, route in routes():
        address = address_of(world, route) if not route.startswith("^") else ""
        operation = published()["paths"].get(template_of(address), {}).get(method.lower())
        if operation:
            status = ask(asked, method, address)
            assert ({} in operation["security"]) == (status != 401), (method, route, status)


def test_every_address_answers_each_role_of_a_hidden_task_as_the_table_says(world):
    """Who takes part reads nothing: no text, label or vote of others but what is to be judged."""
    plant(world)
    members, found, members_only = members_of(world, APIClient), [HEAD_OF_ROLES], set()
    for method, route in routes():
        if not re.match(r"(tasks|examples|reports)/<", route):
            continue
        address, codes = address_of(world, route), []
        for role in ROLES:
            response = answer(members[role], method, address)
            codes.append(response.status_code)
            if role not in READ and tells(response):
                members_only.add((role, route))
        found.append(line(method, codes, route))
    check(KNOWN.with_name("roles.txt"), found)
    judging = "tasks/<slug:code>/judging/next/"
    assert members_only == {("annotator", judging), ("judge", judging)}


# Authors take the page of their own catch away, also when they may see its task no longer.
WITHDRAWAL = ("DELETE", "tasks/<slug:code>/catches/<uuid:uuid>/sharing/")


def test_nothing_of_a_hidden_task_is_there_for_others(world, clients):
    """Whoever may not see the task learns nothing of it and changes nothing in it."""
    Task.objects.update(is_visible=False)
    for method, route in routes():
        if re.match(r"(tasks|models|examples|attempts|assignments|contexts|reports)/<", route):
            address = address_of(world, route)
            assert ask(clients["anonymous"], method, address) in (401, 404), (method, route)
            if (method, route) != WITHDRAWAL:
                assert ask(clients["other"], method, address) == 404, (method, route)


def test_what_is_ones_own_is_there_for_nobody_else(world, clients):
    """Uploads, webhooks and tokens are not even an administrator's."""
    for method, route in routes():
        if re.match(r"(uploads|webhooks|tokens)/<", route):
            address = address_of(world, route)
            for who in ("other", "admin"):
                assert ask(clients[who], method, address) == 404, (method, route, who)
