"""What a guest wrote in practice waits in their browser until they have an account."""

import re
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.core import mail
from django.utils import timezone

from annotation.models import Assignment, Example
from core.web import guest_text
from core.web.guest_text import COOKIE_NAME, GuestText, seal_text, unseal_text
from tests.support.factories import UserFactory, scripted_target
from tests.support.writing import open_form
from tests.web.conftest import HTMX

PASSWORD = "correct horse battery 1"
TEXT = "The soup was warm, so my tongue is burnt."


@pytest.fixture
def practised(client, sentiment):
    """The sealed text of a guest's try that fooled the model, with the goal that is rarer."""
    scripted_target(sentiment, label="positive", prob={"positive": 0.9, "negative": 0.1})
    form = open_form(client, "/t/sentiment/try/") | {"goal": "negative", "text": TEXT}
    told = client.post("/t/sentiment/try/", form, **HTMX)
    assert told.context["outcome"] == "fooled"
    return re.search('name="kept" value="([^"]+)"', told.text)[1]


def keep(client, sealed, code="sentiment"):
    return client.post(f"/t/{code}/try/keep/", {"kept": sealed})


def check_is_filled_in(client):
    """The form has text and goal, submits, and the browser keeps nothing any more."""
    page = client.get("/t/sentiment/write/")
    assert (page.context["work"].goal, page.context["form"]["text"].value()) == ("negative", TEXT)
    assert client.cookies[COOKIE_NAME].value == ""
    again = client.get("/t/sentiment/write/")  # it is the draft now
    assert again.context["form"]["text"].value() == TEXT
    client.post("/t/sentiment/write/", open_form(client, "/t/sentiment/write/") | {"text": TEXT})
    assert Example.objects.get().inputs["text"] == TEXT
    assert Example.objects.get().goal == "negative"


@pytest.mark.parametrize("verification", ["none", "mandatory"])
def test_it_is_filled_in_after_sign_up(client, settings, practised, verification):
    settings.ACCOUNT_EMAIL_VERIFICATION = verification
    sent = keep(client, practised)
    assert sent["Location"].endswith("?next=%2Ft%2Fsentiment%2Fwrite%2F")
    assert not Session.objects.exists()  # nothing of it is stored here
    assert not Assignment.objects.exists()
    cookie = client.cookies[COOKIE_NAME]
    assert TEXT not in cookie.value
    assert cookie["httponly"]
    account = {"email": "guest@example.com", "password1": PASSWORD}
    arrived = client.post("/accounts/signup/", account)  # its `next` is lost
    if verification == "mandatory":
        link = re.search(r"/accounts/confirm-email/\S+", mail.outbox[-1].body)[0]
        client.post(link)
        login = {"login": account["email"], "password": PASSWORD}
        arrived = client.post("/accounts/login/", login)
    assert arrived["Location"] == "/t/sentiment/write/"
    check_is_filled_in(client)


def test_it_waits_while_another_text_is_begun_or_nobody_writes(client, practised, sentiment):
    client.force_login(UserFactory())
    assert keep(client, practised)["Location"] == "/t/sentiment/write/"
    sentiment.state = "paused"
    sentiment.save()
    client.get("/t/sentiment/write/")
    sentiment.state = "open"
    sentiment.save()
    assert client.cookies[COOKIE_NAME].value
    assert client.get("/t/sentiment/write/").context["form"]["text"].value() == TEXT
    Assignment.objects.update(draft={"text": "Mine."})
    keep(client, practised)
    assert client.get("/t/sentiment/write/").context["form"]["text"].value() == "Mine."
    assert client.cookies[COOKIE_NAME].value
    client.post("/accounts/logout/")
    assert not client.cookies[COOKIE_NAME].value  # the next person here finds nothing


def test_what_cannot_count_is_not_kept(client, nli, sentiment, practised, monkeypatch):
    scripted_target(nli, label="entailment")
    form = open_form(client, "/t/nli/try/") | {"goal": "neutral"}
    fooled = client.post("/t/nli/try/", form, **HTMX)
    assert fooled.context["outcome"] == "fooled"
    assert 'name="kept"' not in fooled.text  # its passage is drawn for nobody
    form = open_form(client, "/t/sentiment/try/") | {"goal": "positive", "text": TEXT}
    right = client.post("/t/sentiment/try/", form, **HTMX)
    assert right.context["outcome"] == "not_fooled"
    assert 'name="kept"' not in right.text
    assert keep(client, practised, "nli").status_code == 404
    assert keep(client, "forged").status_code == 404
    monkeypatch.setattr(guest_text, "MAX_COOKIE_BYTES", 10)
    assert seal_text(GuestText("sentiment", "", {"text": TEXT})) == ""


def test_it_is_forgotten_after_three_days(monkeypatch):
    sealed = seal_text(GuestText("sentiment", "", {"text": TEXT}))
    assert unseal_text(sealed).inputs == {"text": TEXT}
    later = timezone.now() + timedelta(days=3, minutes=1)
    monkeypatch.setattr(timezone, "now", lambda: later)
    assert unseal_text(sealed) is None
