"""One person writes only a share of a large round, and knows what is left."""

import re

import pytest

from annotation import selectors
from annotation.models import Example
from tasks.models import Round
from tests.support.judging import write
from tests.support.writing import URL, open_form
from tests.web.conftest import HTMX


def count_left(client):
    """Return how many examples the page says that the person can still write."""
    return int(re.search(r"data-left>\D*(\d+)<", client.get(URL).text)[1])


@pytest.fixture(autouse=True)
def _large(monkeypatch):
    monkeypatch.setattr(selectors, "MIN_LARGE_ROUND_EXAMPLES", 40)


def test_with_a_budget_the_page_says_what_is_left(as_alice, alice, nli):
    Round.objects.update(max_collected=40)
    assert count_left(as_alice) == 2
    write(nli, alice)
    assert count_left(as_alice) == 1
    write(nli, alice, 1)
    response = as_alice.post(URL, open_form(as_alice), **HTMX)
    assert response.status_code == 429
    assert 'data-code="cap"' in response.text
    assert Example.objects.count() == 2


def test_a_small_round_has_no_such_cap(as_alice, alice, nli):
    Round.objects.update(max_collected=39)
    for number in range(3):
        write(nli, alice, number)
    assert "data-left" not in as_alice.get(URL).text
    assert as_alice.post(URL, open_form(as_alice), **HTMX).status_code == 200


def test_without_a_budget_the_cap_grows_with_the_round(as_alice, alice, bob, nli):
    write(nli, alice)
    for number in range(1, 40):
        write(nli, bob, number)
    assert count_left(as_alice) == 1
    write(nli, alice, 50)
    assert as_alice.post(URL, open_form(as_alice), **HTMX).status_code == 429
    for number in range(60, 90):
        write(nli, bob, number)
    assert as_alice.post(URL, open_form(as_alice), **HTMX).status_code == 200
