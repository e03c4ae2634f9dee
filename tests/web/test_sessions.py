"""Sessions are read by a prepared query, and are over as soon as their row is."""

from datetime import timedelta

import pytest
from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from core.accounts.sessions import SessionStore

pytestmark = pytest.mark.django_db


def signed_in(client):
    return client.get("/me/").status_code == 200


def test_a_session_is_over_once_its_row_is_gone(alice):
    here, elsewhere = Client(), Client()
    for browser in (here, elsewhere):
        browser.force_login(alice)
        assert signed_in(browser)
    elsewhere.post("/accounts/logout/")
    assert (signed_in(here), signed_in(elsewhere)) == (True, False)
    Session.objects.all().delete()
    assert not signed_in(here)


def test_a_session_is_over_when_its_time_is(as_alice):
    assert signed_in(as_alice)
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
    assert not signed_in(as_alice)


@pytest.mark.parametrize("key", ["", "short", "x" * 32, "é" * 32, "' OR 1=1 --" * 3])
def test_an_unknown_key_is_no_session(client, key):
    client.cookies["sessionid"] = key
    assert not signed_in(client)


@pytest.mark.parametrize(("writes", "reads"), [(SessionStore, db), (db.SessionStore, None)])
def test_releases_before_and_after_read_what_the_other_wrote(
    writes, reads, django_assert_num_queries
):
    written = writes()
    written["words"] = "Grüße"
    written.save()
    read = (reads.SessionStore if reads else SessionStore)(written.session_key)
    with django_assert_num_queries(1):
        assert read["words"] == "Grüße"
