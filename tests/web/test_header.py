"""The header of every page: which item is lit, what the account menu names; the footer."""

import re

import pytest

from dynabench.templatetags.site_menu import find_section
from tasks.models import TaskMember
from tests.support.campaigns import open_campaign, take_part
from tests.support.factories import scripted_target
from tests.support.submissions import submission_of

LIT = re.compile(r'<a href="([^"]*)"(?: data-key="\?" data-overlay)? aria-current="(\w+)"')


def menu_of(page, name="desk"):
    """The header's part of this class."""
    return page.text.partition("<main")[0].partition(f'class="{name}')[2]


def lit_of(page):
    """The lit items of the header, once for wide pages and once for phones."""
    return set(LIT.findall(page.text.partition("<main")[0]))


@pytest.mark.parametrize(
    ("address", "item", "current"),
    [
        ("/", "/", "page"),
        ("/t/nli/", "/", "true"),
        ("/t/nli/write/", "/", "true"),
        ("/t/nli/data/", "/", "true"),
        ("/t/nli/leaderboard/", "/leaderboards/", "true"),
        ("/t/nli/leaderboard/compare/", "/leaderboards/", "true"),
        ("/t/nli/models/", "/leaderboards/", "true"),
        ("/leaderboards/", "/leaderboards/", "page"),
        ("/me/", "/me/", "page"),
        ("/me/assignments/", "/me/", "true"),
        ("/manage/", "/manage/", "page"),
        ("/own/nli/rounds/", "/manage/", "true"),
        ("/help/", "/help/", "true"),
        ("/docs/", "/help/", "true"),
    ],
)
def test_the_item_of_a_page_is_lit(as_alice, alice, nli, address, item, current):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    page = as_alice.get(address)
    assert page.status_code == 200
    assert lit_of(page) == {(item, current)}


@pytest.mark.parametrize("address", ["/account/", "/me/models/", "/me/news/", "/me/teams/"])
def test_pages_of_the_account_light_its_menu(as_alice, address):
    page = as_alice.get(address)
    assert lit_of(page) == set()
    assert re.search(r'id="account-menu"><summary aria-current="true"', page.text)


def test_a_model_lights_leaderboards(as_alice, alice, nli):
    model = submission_of(nli.task, alice)
    assert lit_of(as_alice.get(f"/m/{model.pk}/")) == {("/leaderboards/", "true")}


def test_other_addresses_light_nothing():
    assert find_section("/status/") == ""
    assert find_section("/nothing/at/all/") == ""


def test_the_account_menu_names_who_and_its_pages(as_alice, alice, client):
    page = as_alice.get("/help/")
    menu = menu_of(page, "menu phone")
    assert alice.email in menu
    assert alice.annotator.pseudonym in menu
    links = re.findall(r'href="([^"]*)"', menu.partition('class="who"')[2])
    assert links == [
        "/account/", "/me/news/", "/me/models/", "/me/teams/", "/account/tokens/",
        "/account/webhooks/",
    ]  # fmt: skip
    for link in links:
        assert client.get(link).status_code == 200
    alice.is_superuser = True
    alice.save()
    assert 'href="/admin/"' in menu_of(as_alice.get("/help/"), "menu phone")


def test_the_footer_leads_to_pages_that_everybody_may_open(client, db):
    footer = client.get("/").text.partition('class="site-links"')[2]
    links = re.findall(r'href="([^"]*)"', footer)
    assert len(links) == 7
    for link in links:
        assert client.get(link).status_code == 200, link


def test_people_of_a_panel_are_shown_no_page_that_is_closed_to_them(nli):
    scripted_target(nli, label="entailment")
    campaign = open_campaign(nli.task)
    client, _answer = take_part(campaign)
    page = client.get("/t/nli/write/")
    assert page.wsgi_request.is_narrow
    assert 'class="tabs' not in page.text
    assert 'class="desk' not in page.text
    links = re.findall(r'href="(/[^"]*)"', page.text.partition('class="site-links"')[2])
    assert len(links) == 3
    for link in links:
        assert client.get(link).status_code == 200, link
