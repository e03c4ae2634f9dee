"""The pages of a task and of its owners, with where they are in the world of the API's tests."""

import re
from dataclasses import replace

from django.urls import URLPattern

from dynabench.urls import urlpatterns
from tests.support.campaigns import paid_place

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
    name = ids["files" if is_data else "forks" if "forks" in route else "evaluation-sets"][0]
    if "/chart/" in route:
        name = "days" if route.startswith("own/") else "ranking"
    filled = {
        "code": "nli",
        "number": ids["snapshots"][0] if "snapshots" in route else ids["rounds"][is_data],
        "version": 1,
        "tool": "doccano",
        "action": "pause",
        "slug": "study",
        "step": "people",
        "kind": "rules" if "adversaries" in route else "ledger",
        "who": "authors",
        "uuid": ids["examples"][0],
        "pk": ids.get(route.split("/<int:pk>")[0].rsplit("/", 1)[-1], ids["models"])[0],
        "name": name,
        "format": "svg",
    }
    return "/" + re.sub(
        r"<\w+:(\w+)>|\(\?P<(\w+)>[^)]*\)", lambda m: str(filled[m[1] or m[2]]), route
    )


def with_pages(world):
    """The world with the ids that only pages have in their addresses."""
    ids = dict(world.ids)
    version = world.task.evaluation_sets.get(name=ids["evaluation-sets"][0]).versions.last()
    study = world.task.campaigns.get(slug="study")
    ids |= {
        "targets": ids["target-models"],
        "contexts": ids["context-batches"],
        "invitations": ids["task-invitations"],
        "assignments": ids["duties"],
        "sets": [version.pk],
        "places": [paid_place(study, 1).pk],
        "payments": [study.all_places.get().payments.create(kind="bonus", state="done").pk],
    }
    return replace(world, ids=ids)
