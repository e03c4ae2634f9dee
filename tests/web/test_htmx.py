"""No htmx request ever gets a redirect, at any address of the site."""

import pytest

from tests.support.admin_forms import ADDRESSES
from tests.web.conftest import HTMX


def test_the_list_is_whole():
    assert len(ADDRESSES) > 60
    assert {"/t/nli/write/", "/accounts/login/", "/account/", "/admin/"} <= set(ADDRESSES)


@pytest.mark.parametrize("who", ["nobody", "alice", "staff"])
def test_no_htmx_request_gets_a_redirect(client, alice, bob, nli, who):
    client.raise_request_exception = False
    bob.is_staff = bob.is_superuser = True
    bob.save()
    asked = 0
    for address in ADDRESSES:
        for method in ("get", "post"):
            if who != "nobody" and "_auth_user_id" not in client.session:
                client.force_login(alice if who == "alice" else bob)
            for path in {address, address.rstrip("/") or "/"}:
                response = getattr(client, method)(path, **HTMX)
                assert not 300 <= response.status_code < 400, f"{method} {path}"
                asked += 1
    assert asked >= 2 * len(ADDRESSES)


def test_signed_out_gets_the_notice(client, nli):
    response = client.get("/t/nli/write/", **HTMX)
    assert response.status_code == 401
    assert "/accounts/login/?next=" in response.text


def test_a_redirect_within_the_site_becomes_a_navigation(client, alice):
    client.force_login(alice)
    response = client.post("/account/keyboard-mode/", {"on": "1"}, **HTMX)
    assert (response.status_code, response["HX-Redirect"]) == (200, "/help/")


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["page", "htmx"])
def test_an_old_form_is_told_in_the_shape_that_was_asked_for(alice, nli, headers):
    from django.test import Client

    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    response = client.post("/t/nli/write/", {}, **headers)
    assert response.status_code == 403
    assert "The form is too old" in response.text
    assert ("<html" in response.text) == (not headers)
