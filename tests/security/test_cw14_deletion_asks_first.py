"""One tap on a personal page deletes nothing: a page says what goes, and asks again."""

import re

import pytest

from core.accounts.models import Annotator, User
from dynabench.campaigns.models import LedgerRow, Place
from tests.support.campaigns import open_campaign, take_part
from tests.support.judging import write, write_many
from validation.models import Validation

pytestmark = pytest.mark.django_db


@pytest.fixture
def mine(nli, bob):
    """A personal page of somebody who has written two examples and judged one."""
    client, page = take_part(open_campaign(nli.task, pay_bonus=10))
    place = Place.objects.get()
    write_many(nli, place.annotator.user, ["fooled"] * 2)
    Validation.objects.create(example=write(nli, bob), validator=place.annotator, label="neutral")
    return client, re.search(r"/personal/[\w-]+/", page.text)[0]


def test_one_request_deletes_nothing(mine, client):
    person, url = mine
    for told in ({}, {"sure": "yes"}):
        assert person.post(url, told).status_code == 405
    page = person.get(url)
    assert f'href="{url}delete/"' in page.text
    assert "<form" not in page.text.partition("<main")[2].partition("</main>")[0]
    person.get(f"{url}delete/", {"sure": "yes"})
    for told in ({}, {"sure": ""}):
        assert person.post(f"{url}delete/", told).status_code == 422
    assert Annotator.objects.filter(user__isnull=False, places__isnull=False).count() == 1


def test_the_page_says_what_goes(mine):
    person, url = mine
    told = person.get(f"{url}delete/").context
    assert (told["written"], told["judged"], told["released"], told["compared"]) == (2, 1, 0, 0)
    assert [(going, owed) for _place, going, owed in told["studies"]] == [(True, 0)]
    place = Place.objects.get()
    Place.objects.update(state="submitted")
    for kind, amount in (("earned", 150), ("bonus", 10), ("paid", 100)):
        LedgerRow.objects.create(place=place, kind=kind, amount=amount, currency="EUR", cause="t")
    told = person.get(f"{url}delete/").context
    assert [(going, owed) for _place, going, owed in told["studies"]] == [(False, 60)]


def test_a_second_step_deletes_it(mine, bob):
    person, url = mine
    page = person.post(f"{url}delete/", {"sure": "on"})
    assert page.context["is_gone"]
    assert User.objects.get() == bob
    assert Place.objects.get().annotator.user is None
    assert person.get(url).status_code == 404
    assert person.get(f"{url}delete/").status_code == 404


def test_no_other_page_deletes(mine, client):
    """Without the secret of the link there is nothing."""
    _person, url = mine
    assert client.post("/personal/made-up/delete/", {"sure": "on"}).status_code == 404
    assert client.get(f"{url}delete/").status_code == 200  # it opens in another browser, too
