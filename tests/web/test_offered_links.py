"""Links that pages of a task show: none leads its reader to a refusal."""

# ruff: noqa: F811  (fixtures are named where they are used)

import re

import pytest
from django.test import Client
from django.urls import reverse

from dynabench.manage.navigation import PAGE_PERMISSIONS
from tests.support.api_routes import world  # noqa: F401
from tests.support.page_routes import address_of, routes, with_pages
from tests.support.roles import blind_owner, members_of, plant

pytestmark = pytest.mark.django_db
LINK = re.compile(r'<a\b[^>]*?\bhref="(/(?:own|t|admin)/[^"#?]*)')


def refusals(client, pages):
    """Links that refuse this person, of the pages that open for them: (page, link, status)."""
    codes, shown = {}, {}
    for page in pages:
        response = client.get(page)
        codes[page] = response.status_code
        if response.status_code == 200 and not response.streaming:
            for link in LINK.findall(response.content.decode(errors="replace")):
                shown.setdefault(link, page)
    for link, page in shown.items():
        code = codes[link] if link in codes else client.get(link).status_code
        if code in (403, 404) or (code == 302 and link.startswith("/admin/")):
            yield page, link, code


def test_no_page_of_a_task_leads_its_reader_to_a_refusal(world):
    world = with_pages(world)
    plant(world)
    people = members_of(world, Client) | {"blind owner": blind_owner(world, Client)}
    pages = [address_of(world, route) for route in routes()]
    for role in ("reviewer", "viewer", "blind owner", "judge"):
        walked = [page for page in pages if role != "judge" or page.startswith("/t/")]
        assert not list(refusals(people[role], walked)), role


def test_a_blind_owner_who_asks_for_a_hidden_page_is_shown_the_switch(world):
    blind = blind_owner(with_pages(world), Client)
    page = blind.get("/own/nli/review/")
    assert page.status_code == 403
    assert page.context["cure"].page == "/own/nli/access/#blind"
    assert 'href="/own/nli/access/#blind"' in blind.get("/own/nli/").text


def test_an_owner_is_offered_every_page(world):
    client = Client()
    client.force_login(world.owner)
    page = client.get("/own/nli/")
    own = [
        name for name in PAGE_PERMISSIONS if "arena" not in name and name != "evaluation:llm-judges"
    ]
    number = page.context["round"].number
    for name in own:
        args = [world.task.pk] if name.startswith("admin:") else ["nli"]
        of_a_round = ("own:policy", "own:second-opinion", "own-mixed:arms")
        args += [number] if name in of_a_round else []
        if name != "evaluation:export":
            assert f'href="{reverse(name, args=args)}"' in page.text, name
