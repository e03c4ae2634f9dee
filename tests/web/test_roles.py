"""What each role gets at every page of a hidden task: tests/web/roles.txt, to read line by line.

Whoever takes part is told nothing that readers alone may learn, but the text they are to judge.

`./test --update access` writes the lines as they are.
"""

# ruff: noqa: F811  (fixtures are named where they are used)

from pathlib import Path

import pytest
from django.test import Client

from tests.support.api_routes import address_of as api_address_of
from tests.support.api_routes import routes as api_routes
from tests.support.api_routes import world  # noqa: F401
from tests.support.page_routes import address_of, routes, with_pages
from tests.support.roles import (
    HEAD,
    READ,
    ROLES,
    answer,
    blind_owner,
    check,
    line,
    members_of,
    plant,
    tells,
)

pytestmark = pytest.mark.django_db
KNOWN = Path(__file__).with_name("roles.txt")
SITE = (
    *("/", "/leaderboards/", "/communities/words/", "/communities/words/board/"),
    *("/communities/words/people/", "/me/", "/me/assignments/", "/me/data/download/", "/new/"),
)
"""Pages about many tasks, which tell nobody more of a hidden one."""


def test_every_page_answers_each_role_as_the_table_says(world):
    world = with_pages(world)
    ids = world.ids
    plant(world)
    members, found, told = members_of(world, Client), [HEAD], set()
    blind, told_blind = blind_owner(world, Client), set()
    for route in routes():
        address = address_of(world, route)
        owner = members["owner"]
        asked = {method: answer(owner, method, address).status_code for method in ("GET", "POST")}
        if set(asked.values()) == {200}:  # an empty form does what GET does
            del asked["POST"]
        if tells(answer(blind, "GET", address)):
            told_blind.add(route)
        for method, first in asked.items():
            if first != 405:
                others = {one: answer(members[one], method, address) for one in ROLES[1:]}
                codes = [response.status_code for response in others.values()]
                found.append(line(method, [first, *codes], route))
                told |= {(route, one) for one in others if tells(others[one])}
    check(KNOWN, found)
    judged = "t/<slug:code>/judge/"
    assert told_blind <= {judged}
    for method, route in api_routes():
        if method == "GET":
            assert not tells(answer(blind, "GET", api_address_of(world, route))), route
    assert {one for one in told if one[1] not in READ} == {(judged, "annotator"), (judged, "judge")}
    assert {one for _route, one in told} >= READ - {"owner"}
    example = ids["examples"][0]
    for address in (*SITE, f"/judge/{example}/after/", f"/attempt/{ids['attempts'][0]}/"):
        for one in ("annotator", "judge", "writer"):
            assert not tells(answer(members[one], "GET", address)), (address, one)
