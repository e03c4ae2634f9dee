"""What somebody tries who wants another's place, money or texts, or to know who took part.

Elsewhere: replayed links and a second person on one machine (`test_campaigns.py`), frames.
"""

import json
import logging
from datetime import timedelta

import pytest
import time_machine
from django.apps import apps
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from dynabench.campaigns.invitations import VALID_DAYS, create_link_key
from dynabench.campaigns.models import Place
from dynabench.campaigns.session import COOKIE_NAME
from tests.support.campaigns import PANEL_IDS, YES, come, open_campaign, take_part
from tests.support.factories import UserFactory, scripted_target
from tests.support.judging import write
from tests.support.writing import open_form
from tests.web.conftest import HTMX

pytestmark = pytest.mark.django_db
PROLIFIC, MTURK = PANEL_IDS["prolific"], PANEL_IDS["mturk"]


def nobody_got_in():
    return not Place.objects.exclude(annotator=None).exists()


FORGED = [
    ("link", {"pid": 'x"><script>'}),
    ("link", {"pid": "a" * 101}),
    ("link", {"pid": "a\x00b"}),
    ("link", {"PROLIFIC_PID": PROLIFIC["PROLIFIC_PID"]}),
    ("prolific", {**PROLIFIC, "PROLIFIC_PID": "g" * 24}),
    ("prolific", {**PROLIFIC, "SESSION_ID": ""}),
    ("mturk", {**MTURK, "workerId": "a1"}),
    ("mturk", {**MTURK, "hitId": "../x"}),
    ("invitation", {"key": "forged"}),
    ("account", {"pid": "person"}),
]


@pytest.mark.parametrize(("way", "ids"), FORGED)
def test_forged_ids_open_nothing(nli, way, ids):
    open_campaign(nli.task, way=way)
    client = Client()
    page = client.get("/c/study/", ids)
    assert page.status_code == (302 if way == "account" else 400)  # to sign in
    client.post("/c/study/consent/", YES)
    assert nobody_got_in()


def test_an_invitation_is_for_one_study_and_ends(nli):
    first, second = (open_campaign(nli.task, slug=slug, way="invitation") for slug in "ab")
    key = {"key": create_link_key(first)}
    assert Client().get(f"/c/{second.slug}/", key).status_code == 400
    with time_machine.travel(timezone.now() + timedelta(days=VALID_DAYS, minutes=1)):
        assert Client().get(f"/c/{first.slug}/", key).status_code == 400


def test_a_cookie_is_for_one_study_and_cannot_be_written(nli):
    first, second = (open_campaign(nli.task, slug=slug) for slug in "ab")
    client, _page = come(first)
    told = client.cookies[COOKIE_NAME].value
    for cookie in (told, told[:-4] + "AAAA", json.dumps({"campaign": second.pk})):
        other = Client()
        other.cookies[COOKIE_NAME] = cookie
        other.post(f"/c/{second.slug}/consent/", YES)
    assert nobody_got_in()
    for _ in range(2):  # what was sent is sent again
        client.post(f"/c/{first.slug}/consent/", YES)
    assert first.all_places.exclude(annotator=None).count() == 1


@pytest.mark.parametrize("state", ["draft", "paused", "closed"])
def test_who_read_the_text_before_does_not_enter_afterwards(nli, state):
    campaign = open_campaign(nli.task)
    client, page = come(campaign)
    assert "what you write" in page.text
    campaign.state = state
    campaign.save()
    client.post("/c/study/consent/", YES)
    assert nobody_got_in()
    for path in ("progress/", "test/"):
        assert client.get(f"/c/study/{path}").status_code in (302, 404)


def test_anothers_place_and_texts_stay_theirs(nli, as_alice, alice):
    campaign = open_campaign(nli.task)
    secrets, clients = [], []
    for name in ("first", "second"):
        client, page = take_part(campaign, pid=name)
        secrets.append(page.text.split("/personal/")[1].split("/")[0])
        clients.append(client)
    cache.clear()
    places = list(campaign.all_places.order_by("pk"))
    for place, text in zip(places, ("One of mine.", "One of theirs."), strict=True):
        write(nli, place.annotator.user, number=text, hypothesis=text, label="neutral")
    for tried in (*(f"{one[:-1]}~" for one in secrets), places[1].digest, "second", "x" * 43):
        assert clients[0].get(f"/personal/{tried}/download/").status_code == 404
        assert clients[0].post(f"/personal/{tried}/delete/", {"sure": "yes"}).status_code == 404
    mine = b"".join(as_alice.get(f"/personal/{secrets[0]}/download/").streaming_content).decode()
    assert ("One of mine." in mine, "One of theirs." in mine) == (True, False)
    as_alice.post(f"/personal/{secrets[0]}/delete/", {"sure": "yes"})
    places[0].annotator.refresh_from_db()
    places[1].annotator.refresh_from_db()
    assert (places[0].annotator.user, places[1].annotator.user is None) == (None, False)
    assert type(alice).objects.filter(pk=alice.pk).exists()
    stranger = Client()
    stranger.force_login(UserFactory())
    for path in ("progress/", "test/", "finish/", "leave/", "appeal/"):
        assert stranger.post(f"/c/study/{path}").status_code in (404, 405)
    assert campaign.all_places.get(pk=places[1].pk).state == "working"


@pytest.mark.parametrize("way", ["link", "prolific", "mturk"])
def test_logs_and_stored_rows_hold_no_id_of_a_panel(nli, caplog, way):
    caplog.set_level(logging.DEBUG)
    scripted_target(nli, label="entailment")
    campaign = open_campaign(nli.task, way=way)
    forged = dict.fromkeys(PANEL_IDS[way], "forged-id!")
    assert Client().get("/c/study/", forged).status_code == 400
    client, page = take_part(campaign)
    client.post("/t/nli/write/", open_form(client, text="They left the mill."), **HTMX)
    client.post("/c/study/finish/")
    assert "DONE" in client.get("/c/study/progress/").text
    client.get("/c/study/nothing/", PANEL_IDS[way])  # not found, which is logged
    rows = str([list(model.objects.values_list()) for model in apps.get_models()])
    for one in (*PANEL_IDS[way].values(), "forged-id!"):
        if one == MTURK["turkSubmitTo"]:
            continue
        for where in (caplog.text, rows, page.text):
            assert one not in where
