"""No htmx request ever gets a redirect, at any address of the site."""

import pytest

from tests.support.admin_forms import ADDRESSES
from tests.web.conftest import HTMX


def test_the_list_is_whole():
    assert len(ADDRESSES) > 60
    assert {"/t/nli/write/", "/accounts/login/", "/account/", "/admin/"} <= set(ADDRESSES)


def test_no_htmx_request_gets_a_redirect(client, alice, nli):
    """Signed out everywhere, and each form as somebody who may do everything."""
    client.raise_request_exception = False
    alice.is_superuser = True
    alice.save()
    for address in ADDRESSES:
        _ask(client.get, address)
    for address in ADDRESSES:
        if not address.startswith("/api/"):
            for method in (client.get, client.post):
                if "_auth_user_id" not in client.session:
                    client.force_login(alice)
                _ask(method, address)


@pytest.mark.parametrize("who", ["nobody", "alice"])
@pytest.mark.parametrize("path", ["/admin/", "/t/nli/write", "/own/nli", "/me"])
def test_nor_do_a_person_without_rights_or_an_address_without_its_slash(
    client, alice, nli, who, path
):
    if who == "alice":
        client.force_login(alice)
    for method in (client.get, client.post):
        _ask(method, path)


def _ask(method, path):
    response = method(path, **HTMX)
    assert not 300 <= response.status_code < 400, f"{method.__name__} {path}"


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
    assert "403_csrf.html" in [template.name for template in response.templates]
    assert ("<html" in response.text) == (not headers)
