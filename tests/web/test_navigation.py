"""The list beside the owners' pages: what it offers to whom, what is lit, what waits."""

import re

import pytest
from django.urls import URLPattern, get_resolver

from annotation.models import Report
from core.accounts.services import get_annotator
from dynabench.manage.navigation import SIDE_GROUPS
from tasks.making.templates import load_templates
from tasks.models import TaskMember
from tests.support.arenas import make_arena
from tests.support.factories import RoundFactory, TaskFactory
from tests.support.judging import write
from validation.judging.blind_services import begin_blind_judging
from validation.models import Consensus

LINK = re.compile(r'<a (?:class="button quiet small" )?href="([^"]*)"( aria-current="\w+")?>')
UNDECIDED = {"state": "no_consensus", "votes": 3, "still_needed": 0}


def side_of(page):
    """The links of the list beside the page: whether each is lit, by its address."""
    side = page.text.partition('<nav class="side"')[2].partition("</nav>")[0]
    return {url: bool(lit) for url, lit in LINK.findall(side)}


def counts_of(page):
    """The numbers in the list beside the page."""
    side = page.text.partition('<nav class="side"')[2].partition("</nav>")[0]
    return [int(number) for number in re.findall(r'class="count">(\d+)', side)]


def give_role(task, user, role="owner"):
    return TaskMember.objects.create(task=task, user=user, role=role)


def owner_views(patterns, before="", namespace=""):
    """The names of all views below /own/."""
    for one in patterns:
        address = before + str(one.pattern)
        if isinstance(one, URLPattern):
            if address.startswith("own/<"):
                yield f"{namespace}{one.name}"
        else:
            inner = f"{one.namespace}:" if one.namespace else ""
            yield from owner_views(one.url_patterns, address, namespace + inner)


def test_each_owners_view_lights_one_entry():
    pages = [page for group in SIDE_GROUPS for page in group.pages]
    names = set(owner_views(get_resolver().url_patterns))
    assert len(names) > 80
    for name in names:
        lit = [page.view for page in pages if page.includes_view(name)]
        assert len(lit) == 1, (name, lit)


def make_task(kind):
    if kind == "arena":
        return make_arena("mine")
    text = TaskFactory.build(code="nli").config_text
    if kind == "judging":
        text = load_templates()["labels"].text
    task = TaskFactory(code="mine", config_text=text)
    RoundFactory(task=task)
    return task


@pytest.mark.parametrize(
    ("kind", "has", "lacks"),
    [
        (
            "examples",
            {"targets/", "texts/", "trainings/", "evaluation-sets/", "own-workers/", "review/"},
            {"arena/", "arena/voters/"},
        ),
        ("judging", {"rounds/", "review/", "results/"}, {"targets/", "trainings/", "texts/"}),
        (
            "arena",
            {"arena/", "arena/voters/", "arena/conversations/", "config/"},
            {"rounds/", "targets/", "trainings/", "review/", ""},
        ),
    ],
)
def test_each_kind_of_task_has_its_entries_and_each_opens(as_alice, alice, kind, has, lacks):
    give_role(make_task(kind), alice)
    links = side_of(as_alice.get("/own/mine/log/"))
    assert {f"/own/mine/{path}" for path in has} <= links.keys()
    assert not {f"/own/mine/{path}" for path in lacks} & links.keys()
    assert [link for link, lit in links.items() if lit] == ["/own/mine/log/"]
    for link in links:
        status = as_alice.get(link, follow=True).status_code
        # What has opened is not deleted, and its page says so.
        is_kept = link == "/own/mine/delete/" and kind != "arena"
        assert status == (409 if is_kept else 200), link


@pytest.mark.parametrize(
    ("page", "lit"),
    [
        ("rounds/new/", "rounds/"),
        ("rounds/1/contexts/", "texts/"),
        ("rounds/1/contexts/all/", "texts/"),
        ("generator/", "targets/"),
        ("access/invitations/", "access/"),
        ("evaluation-sets/new/", "evaluation-sets/"),
        ("campaigns/new/", "campaigns/"),
    ],
)
def test_a_page_below_an_entry_lights_it(as_alice, alice, nli, page, lit):
    give_role(nli.task, alice)
    links = side_of(as_alice.get(f"/own/nli/{page}"))
    assert [link for link, is_lit in links.items() if is_lit] == [f"/own/nli/{lit}"]


def test_texts_are_those_of_the_open_round(as_alice, alice, nli):
    give_role(nli.task, alice)
    RoundFactory(task=nli.task, number=2, state="draft")
    assert as_alice.get("/own/nli/texts/").url == "/own/nli/rounds/1/contexts/all/"
    nli.state = "closed"
    nli.save()
    assert as_alice.get("/own/nli/texts/").url == "/own/nli/rounds/2/contexts/all/"
    nli.task.rounds.all().delete()
    assert as_alice.get("/own/nli/texts/").url == "/own/nli/rounds/"


def test_what_waits_is_counted_beside_review_and_reports(as_alice, alice, bob, nli):
    give_role(nli.task, alice)
    assert counts_of(as_alice.get("/own/nli/log/")) == []
    for number in range(2):
        example = write(nli, bob, number)
        Consensus.objects.update_or_create(example=example, defaults={"round": nli, **UNDECIDED})
    context = nli.contexts.first()
    Report.objects.create(annotator=get_annotator(bob), context=context, reason="broken")
    assert counts_of(as_alice.get("/own/nli/log/")) == [2, 1]


def test_who_judges_blind_sees_no_number_and_no_way_to_one(as_alice, alice, bob, nli):
    give_role(nli.task, alice)
    example = write(nli, bob, 0)
    Consensus.objects.update_or_create(example=example, defaults={"round": nli, **UNDECIDED})
    begin_blind_judging(task=nli.task, owner=alice)
    page = as_alice.get("/own/nli/rounds/")
    assert counts_of(page) == []
    assert "/own/nli/review/" not in side_of(page)
    assert 'id="blind-notice"' in page.text


def first_entry(client):
    """The first link below the task's name."""
    return list(side_of(client.get("/own/nli/log/")))[1]


def test_the_next_step_stands_above_the_list(as_alice, alice, bob, nli):
    give_role(nli.task, alice)
    give_role(nli.task, bob, "viewer")
    assert first_entry(as_alice) == "/own/nli/"  # closing a round is rare
    nli.state = "closed"
    nli.save()
    assert first_entry(as_alice) == "/own/nli/rounds/1/release/"
    as_alice.force_login(bob)
    assert first_entry(as_alice) == "/own/nli/"
