"""Twenty questions of people who look for something: each is answered by a few links.

Each way begins where people look first and names the addresses that they follow, each of which
must be a link of the page before.
"""

# ruff: noqa: F811  (fixtures are named where they are used)

import re
from dataclasses import dataclass

import pytest

from annotation.models import Report
from core.accounts.models import confirm_address
from core.accounts.services import get_annotator
from tasks.models import Round, TaskMember
from tests.support.factories import scripted_target
from tests.support.releases import closed, people, released  # noqa: F401

OWNER, READER, VISITOR = "owner", "reader", "visitor"


@dataclass(frozen=True)
class Way:
    """A question, and how it is answered.

    who: who asks. start: the page where they look first. links: the addresses that they follow.
    view: the view of the last page. shows: what its main part has, as markup.
    """

    question: str
    who: str
    start: str
    links: tuple[str, ...]
    view: str
    shows: str = "<h1"


BOARD, OWN = "/t/nli/leaderboard/", "/own/nli/"
WAYS = (
    Way("my tasks", OWNER, "/", ("/manage/", OWN), "own:dashboard", 'class="side"'),
    Way(
        "what waits for me",
        OWNER,
        "/",
        ("/manage/", f"{OWN}reports/"),
        "own:reports",
        f'action="{OWN}reports/',
    ),
    Way("the documentation", VISITOR, "/", ("/docs/", "/docs/owners/"), "docs-page"),
    Way("the API reference", VISITOR, "/", ("/api/v1/docs/",), "v1:docs"),
    Way("my submitted models", READER, "/", ("/me/models/",), "evaluation:my-models"),
    Way("my teams", READER, "/", ("/me/teams/",), "evaluation:teams", 'name="name"'),
    Way("submit a model", READER, BOARD, ("/t/nli/submit/",), "evaluation:submit"),
    Way(
        "the data of a round",
        READER,
        "/t/nli/",
        ("/t/nli/data/",),
        "task-data",
        'href="/t/nli/rounds/1/data/1/',
    ),
    Way("cite the ranking", READER, BOARD, (f"{BOARD}snapshots/",), "leaderboard:snapshots"),
    Way("who sees the task", OWNER, OWN, (f"{OWN}access/",), "own:access", 'name="is_visible"'),
    Way(
        "add texts",
        OWNER,
        OWN,
        (f"{OWN}texts/", f"{OWN}rounds/2/contexts/"),
        "own:contexts",
        'type="file"',
    ),
    Way(
        "a second model to fool",
        OWNER,
        OWN,
        (f"{OWN}targets/", f"{OWN}targets/choose/"),
        "own:target-choose",
    ),
    Way(
        "pay people",
        OWNER,
        OWN,
        (f"{OWN}campaigns/", f"{OWN}campaigns/new/"),
        "own-campaigns:make",
        'value="pay"',
    ),
    Way("stop mails", READER, "/account/", ("/me/news/",), "news", 'method="post"'),
    Way("keys", VISITOR, "/", ("/help/",), "help", "<kbd>"),
    Way(
        "the ranking of people",
        READER,
        "/leaderboards/",
        (BOARD, "/t/nli/people/"),
        "leaderboard:people",
    ),
    Way("is the site down", VISITOR, "/", ("/status/",), "status"),
    Way(
        "propose a community",
        READER,
        "/",
        ("/communities/", "/communities/new/"),
        "communities:propose",
        'name="slug"',
    ),
)


@pytest.fixture
def task(closed, alice, bob):
    """A task with a released round, an open one and a report; Alice owns it, Bob reads it."""
    released(closed)
    Round.objects.filter(pk=closed.pk).update(state="released")
    live_round = closed.task.rounds.create(number=2, state="draft")
    scripted_target(live_round, name="live")
    Round.objects.filter(pk=live_round.pk).update(state="open")
    confirm_address(bob)
    TaskMember.objects.create(task=closed.task, user=alice, role="owner")
    context = closed.contexts.first()
    Report.objects.create(annotator=get_annotator(bob), context=context, reason="broken")
    return closed.task


def follow(client, start, links):
    """The page to which the links lead."""
    page = client.get(start)
    assert page.status_code == 200
    for link in links:
        assert f'href="{link}"' in page.text, f"{link} is not offered"
        page = client.get(link, follow=True)
        assert page.status_code == 200, link
    return page


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.question)
def test_the_way_is_found(way, client, task, alice, bob):
    if way.who != VISITOR:
        client.force_login({OWNER: alice, READER: bob}[way.who])
    page = follow(client, way.start, way.links)
    assert page.resolver_match.view_name == way.view
    assert way.shows in page.text.partition("<main")[2].partition("<footer")[0]


def test_another_language_is_chosen_in_the_footer(client, task):
    page = client.get("/t/nli/")
    footer = page.text.partition("<footer")[2]
    action = re.search(r'<form[^>]*id="languages"[^>]*action="([^"]*)"', footer)[1]
    assert client.post(action, {"language": "de"}).status_code == 302
    assert '<html lang="de">' in client.get("/t/nli/").text
