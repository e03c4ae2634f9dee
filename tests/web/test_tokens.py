"""The account pages about tokens: the key once, nobody else's, a warning before the end."""

import re
import zipfile
from datetime import timedelta
from io import BytesIO

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from core.accounts.models import ApiToken
from core.accounts.tokens import MAX_TOKENS, create_token
from tests.support.factories import PASSWORD

TOKENS = "/account/tokens/"
ASKED = {"name": "laptop", "scopes": ["read", "submit"], "days": "90"}


@pytest.fixture
def as_alice(as_alice):
    """She gave her password a moment ago."""
    as_alice.post("/accounts/reauthenticate/", {"password": PASSWORD})
    return as_alice


def make(user, name="laptop", days=90):
    return create_token(user=user, name=name, scopes=["read"], days=days)[0]


def test_the_key_is_shown_once_and_works(as_alice):
    response = as_alice.post(TOKENS, ASKED)
    assert response.status_code == 201
    assert "no-store" in response["Cache-Control"]
    key = re.search(r'<code id="key"[^>]*>(dyna_[\w-]+)</code>', response.text)[1]
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {key}")
    assert client.get("/api/v1/me/").json()["token"]["scopes"] == ["read", "submit"]
    page = as_alice.get(TOKENS).text
    assert key not in page
    assert key[:12] in page
    assert "laptop" in page


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"name": ""}, "name"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["root"]}, "scopes"),
        ({"days": "0"}, "days"),
        ({"days": "367"}, "days"),
        ({"days": "9" * 400}, "days"),
    ],
)
def test_what_is_wrong_is_said_and_what_was_typed_stays(as_alice, told, field):
    response = as_alice.post(TOKENS, {**ASKED, **told})
    assert response.status_code == 422
    assert [*response.context["form"].errors] == [field]
    # One error is drawn at its field only. The summary is for screen readers.
    assert 'class="error-summary single" id="error-summary"' in response.text
    assert f'id="id_{field}_error"' in response.text
    assert told.get("days", "90") in response.text
    assert not ApiToken.objects.exists()


def test_a_refusal_of_the_service_is_shown(as_alice, alice):
    for number in range(MAX_TOKENS):
        make(alice, str(number))
    response = as_alice.post(TOKENS, ASKED)
    assert response.status_code == 422
    assert [*response.context["form"].errors] == ["name"]


def test_two_errors_are_listed_above_the_form(as_alice):
    html = as_alice.post(TOKENS, {**ASKED, "name": "", "days": "0"}).text
    assert 'class="error-summary" id="error-summary"' in html
    assert {*re.findall(r'href="#id_(name|days)"', html)} == {"name", "days"}


def test_revoking_asks_first(as_alice, alice):
    token = make(alice)
    address = f"{TOKENS}{token.pk}/revoke/"
    assert 'id="revoke-token"' in as_alice.get(address).text
    assert ApiToken.objects.exists()
    response = as_alice.post(address, follow=True)
    assert response.text.count("laptop") == 1  # in the message alone
    assert not ApiToken.objects.exists()


def test_nobody_elses_token_is_there(as_alice, bob):
    token = make(bob, "bobs")
    assert "bobs" not in as_alice.get(TOKENS).text
    for method in (as_alice.get, as_alice.post):
        assert method(f"{TOKENS}{token.pk}/revoke/").status_code == 404
    assert ApiToken.objects.exists()


def test_one_signs_in_first_and_sends_the_forms_own_token(client, alice):
    assert client.get(TOKENS).url.startswith("/accounts/login/")
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(alice)
    assert strict.post(TOKENS, ASKED).status_code == 403
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize(("days", "warned"), [(13, True), (15, False), (-1, False)])
def test_an_end_within_two_weeks_is_said(as_alice, alice, days, warned):
    make(alice)
    ApiToken.objects.update(expires_at=timezone.now() + timedelta(days=days))
    assert as_alice.get("/account/").context["ending"] == (["laptop"] if warned else [])
    page = as_alice.get(TOKENS).text
    assert ('class="chip held"' in page) == warned
    assert ('class="chip danger"' in page) == (days < 0)


def test_the_account_and_the_submit_page_lead_there(as_alice, nli):
    for page in ("/account/", "/t/nli/submit/"):
        assert f'href="{TOKENS}"' in as_alice.get(page).text


def test_the_page_says_how_to_get_the_client_and_which_address_it_needs(as_alice, client):
    html = as_alice.get("/account/tokens/").text
    assert "http://testserver/dynabench-client.zip#subdirectory=dynabench/client" in html
    assert "export DYNABENCH_URL=http://testserver\n" in html
    got = client.get("/dynabench-client.zip")  # pip signs in nowhere
    assert (got.status_code, got["Content-Type"]) == (200, "application/zip")
    names = zipfile.ZipFile(BytesIO(got.content)).namelist()
    assert "dynabench/client/pyproject.toml" in names
    assert "dynabench/settings.py" not in names
    assert not [name for name in names if "__pycache__" in name]
