"""What each role gets at every page of a hidden task: tests/web/roles.txt, to read line by line.

Whoever takes part is told nothing that readers alone may learn, but the text they are to judge.

`UPDATE_ACCESS=1 ./test web/test_roles.py` writes the lines as they are.
"""

# ruff: noqa: F811  (fixtures are named where they are used)

import re
from pathlib import Path

import pytest
from django.test import Client
from django.urls import URLPattern

from dynabench.urls import urlpatterns
from tests.support.api_routes import world  # noqa: F401
from tests.support.campaigns import paid_place
from tests.support.roles import HEAD, READ, ROLES, answer, check, line, members_of, plant, tells

pytestmark = pytest.mark.django_db
KNOWN = Path(__file__).with_name("roles.txt")
SITE = (
    *("/", "/leaderboards/", "/communities/words/", "/communities/words/board/"),
    *("/communities/words/people/", "/me/", "/me/assignments/", "/me/data/download/", "/new/"),
)
"""Pages about many tasks, which tell nobody more of a hidden one."""
ELSEWHERE = re.compile("arena|battle|conversations|llm-judges|talk|stream")
"""Pages of arenas and chats, and of things that the world lacks."""


def routes(patterns=urlpatterns, before=""):
    """The pages of a task and of its owners as they are written."""
    for one in patterns:
        address = before + re.sub(r"^\^|\$$|\\", "", str(one.pattern))
        if not isinstance(one, URLPattern):
            yield from routes(one.url_patterns, address)
        elif re.match(r"(t|own)/<", address) and not ELSEWHERE.search(address):
            yield address


def address_of(world, route):
    """The address of what is there: released data are of the first round, the rest of the live."""
    ids, is_data = world.ids, "/data/" in route
    filled = {
        "code": "nli",
        "number": ids["snapshots"][0] if "snapshots" in route else ids["rounds"][is_data],
        "version": 1,
        "tool": "doccano",
        "action": "pause",
        "slug": "study",
        "kind": "ledger",
        "who": "authors",
        "uuid": ids["examples"][0],
        "pk": ids.get(route.split("/<int:pk>")[0].rsplit("/", 1)[-1], ids["models"])[0],
        "name": ids["files" if is_data else "forks" if "forks" in route else "evaluation-sets"][0],
    }
    return "/" + re.sub(
        r"<\w+:(\w+)>|\(\?P<(\w+)>[^)]*\)", lambda m: str(filled[m[1] or m[2]]), route
    )


def test_every_page_answers_each_role_as_the_table_says(world):
    ids = world.ids
    version = world.task.evaluation_sets.get(name=ids["evaluation-sets"][0]).versions.last()
    study = world.task.campaigns.get()
    ids |= {
        "targets": ids["target-models"],
        "contexts": ids["context-batches"],
        "invitations": ids["task-invitations"],
        "assignments": ids["duties"],
        "sets": [version.pk],
        "places": [paid_place(study, 1).pk],
        "payments": [study.all_places.get().payments.create(kind="bonus", state="done").pk],
    }
    plant(world)
    members, found, told = members_of(world, Client), [HEAD], set()
    for route in routes():
        address = address_of(world, route)
        owner = members["owner"]
        asked = {method: answer(owner, method, address).status_code for method in ("GET", "POST")}
        if set(asked.values()) == {200}:  # an empty form does what GET does
            del asked["POST"]
        for method, first in asked.items():
            if first != 405:
                others = {one: answer(members[one], method, address) for one in ROLES[1:]}
                codes = [response.status_code for response in others.values()]
                found.append(line(method, [first, *codes], route))
                told |= {(route, one) for one in others if tells(others[one])}
    check(KNOWN, found)
    judged = "t/<slug:code>/judge/"
    assert {one for one in told if one[1] not in READ} == {(judged, "annotator"), (judged, "judge")}
    assert {one for _route, one in told} >= READ - {"owner"}
    example = ids["examples"][0]
    for address in (*SITE, f"/judge/{example}/after/", f"/attempt/{ids['attempts'][0]}/"):
        for one in ("annotator", "judge", "writer"):
            assert not tells(answer(members[one], "GET", address)), (address, one)
