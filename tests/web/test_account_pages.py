"""The pages of an account that allauth serves and our templates show; its mails say what to do."""

import re
from pathlib import Path

import allauth
import pytest
import time_machine
from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.models import EmailAddress, EmailConfirmationHMAC
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.core import mail
from django.template.loader import get_template
from django.test import Client
from django.utils import timezone

from core.accounts.adapter import Adapter
from core.accounts.models import confirm_address
from tests.support.factories import PASSWORD, UserFactory

ADDRESSES = "/accounts/email/"
OTHER = "other@example.com"


@pytest.fixture
def other(as_alice, alice):
    EmailAddress.objects.update_or_create(
        user=alice, email=alice.email, defaults={"verified": True, "primary": True}
    )
    return EmailAddress.objects.create(user=alice, email=OTHER)


def buttons(page):
    return re.findall(r'<button[^>]* name="action_(\w+)"', page)


def test_each_address_has_what_can_be_done_with_it(as_alice, other):
    assert sorted(buttons(as_alice.get(ADDRESSES).text)) == ["add", "primary", "remove", "send"]
    as_alice.post(ADDRESSES, {"action_send": "", "email": OTHER})
    assert not mail.outbox
    as_alice.post("/accounts/reauthenticate/", {"password": PASSWORD})
    as_alice.post(ADDRESSES, {"action_send": "", "email": OTHER})
    assert mail.outbox[0].to == [OTHER]
    EmailAddress.objects.filter(pk=other.pk).update(verified=True)
    assert sorted(buttons(as_alice.get(ADDRESSES).text)) == ["add", "primary", "remove"]
    as_alice.post(ADDRESSES, {"action_primary": "", "email": OTHER})
    assert EmailAddress.objects.get(primary=True).email == OTHER
    as_alice.post(ADDRESSES, {"action_remove": "", "email": "alice@example.com"})
    assert [one.email for one in EmailAddress.objects.all()] == [OTHER]


def test_an_address_that_is_none_is_added_to_no_account(as_alice, other):
    as_alice.post("/accounts/reauthenticate/", {"password": PASSWORD})
    page = as_alice.post(ADDRESSES, {"action_add": "", "email": "nobody"})
    assert 'href="#id_email"' in page.text
    assert EmailAddress.objects.count() == 2


def test_two_factors_lead_to_each_step(as_alice, alice):
    page = as_alice.get("/accounts/2fa/").text
    assert "/accounts/2fa/webauthn/add/" in page
    assert "/accounts/2fa/totp/activate/" in page
    assert "/accounts/2fa/recovery-codes/" not in page
    Authenticator.objects.create(user=alice, type="totp", data={"secret": "x"})
    Authenticator.objects.create(user=alice, type="webauthn", data={})
    Authenticator.objects.create(user=alice, type="recovery_codes", data={"migrated_codes": ["7"]})
    page = as_alice.get("/accounts/2fa/").text
    for step in ("webauthn/", "totp/deactivate/", "recovery-codes/generate/", "recovery-codes/"):
        assert f'href="/accounts/2fa/{step}"' in page


def test_a_code_is_typed_on_digits_and_at_once(client, alice):
    Authenticator.objects.create(user=alice, type="totp", data={"secret": "x"})
    client.post("/accounts/login/", {"login": alice.email, "password": PASSWORD})
    field = re.search(
        r'<input[^>]*name="code"[^>]*>', client.get("/accounts/2fa/authenticate/").text
    )
    assert 'inputmode="numeric"' in field[0]
    assert "autofocus" in field[0]


def test_other_sessions_can_be_ended(client, alice):
    asked = {"login": alice.email, "password": PASSWORD}
    client.post("/accounts/login/", asked)
    assert 'action="/accounts/sessions/"' not in client.get("/accounts/sessions/").text
    session = UserSession.objects.get()
    Client().post("/accounts/login/", asked, headers={"User-Agent": "Lynx"})
    page = client.get("/accounts/sessions/").text
    assert "Lynx" in page
    assert 'action="/accounts/sessions/"' in page
    client.post("/accounts/sessions/")
    assert UserSession.objects.get() == session


def links(message):
    return re.findall(r"https?://\S+/accounts?/\S+", message.body)


@pytest.fixture
def site(settings):
    settings.SITE_URL = "https://site.example"
    return settings.SITE_URL


def test_a_mail_about_a_change_has_one_link(as_alice, alice, site):
    confirm_address(alice)
    fields = {"oldpassword": PASSWORD, "password1": "another-Pass-7", "password2": "another-Pass-7"}
    as_alice.post("/accounts/password/change/", fields)
    (sent,) = mail.outbox
    (found,) = links(sent)
    assert found.startswith(f"{site}/account/undo/")
    assert as_alice.get(found.removeprefix(site)).status_code == 200


@pytest.mark.parametrize(
    ("path", "asked", "link"),
    [
        ("signup", {"email": "alice@example.com", "password1": "a-New-pass-7"}, "password/reset/"),
        ("password/reset", {"email": "nobody@example.com"}, "signup/"),
    ],
)
def test_a_mail_about_an_account_has_one_link(client, alice, settings, path, asked, link):
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    client.post(f"/accounts/{path}/", asked)
    (sent,) = mail.outbox
    (found,) = links(sent)
    assert f"/accounts/{link}" in found


@pytest.fixture
def keys(client, alice):
    """Signed in with a password just now, with an app, a key and one recovery code."""
    confirm_address(alice)
    client.force_login(alice)
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    Authenticator.objects.create(user=alice, type="recovery_codes", data={"migrated_codes": ["7"]})
    Authenticator.objects.create(user=alice, type="totp", data={"secret": "x"})
    credential = {"clientExtensionResults": {"credProps": {"rk": True}}}
    data = {"name": "My key", "credential": credential}
    return Authenticator.objects.create(user=alice, type="webauthn", data=data)


@pytest.mark.parametrize(
    "step", ["totp/deactivate/", "recovery-codes/", "recovery-codes/generate/", "webauthn/"]
)
def test_each_step_of_two_factors_has_a_page(client, keys, step):
    page = client.get(f"/accounts/2fa/{step}")
    assert page.status_code == 200
    assert "<h1>" in page.text


def test_a_key_is_removed(client, keys):
    remove = f"/accounts/2fa/webauthn/keys/{keys.pk}/remove/"
    assert f'href="{remove}"' in client.get("/accounts/2fa/webauthn/").text
    assert "My key" in client.get(remove).text
    client.post(remove)
    assert not Authenticator.objects.filter(pk=keys.pk).exists()


def test_the_app_is_switched_off(client, keys):
    assert (
        'action="/accounts/2fa/totp/deactivate/"'
        in client.get("/accounts/2fa/totp/deactivate/").text
    )
    client.post("/accounts/2fa/totp/deactivate/")
    assert not Authenticator.objects.filter(type="totp").exists()


@pytest.mark.parametrize("key", ["right", "nonsense"])
def test_a_link_that_confirms_leads_on(client, alice, other, key):
    with time_machine.travel(timezone.now(), tick=False):  # the page signs the time again
        if key == "right":
            key = EmailConfirmationHMAC.create(other).key
        page = client.get(f"/accounts/confirm-email/{key}/")
    leads = f'action="/accounts/confirm-email/{key}/"' if ":" in key else 'href="/accounts/email/"'
    assert leads in page.text
    client.post(f"/accounts/confirm-email/{key}/")
    other.refresh_from_db()
    assert other.verified == (":" in key)


@pytest.mark.parametrize("place", ["/new/", "/new/template/qa/", "/t/nli/judge/"])
def test_who_confirms_an_address_goes_on_where_it_was_asked_for(nli, settings, place):
    settings.ACCOUNT_EMAIL_VERIFICATION, settings.NEW_TASKS = "optional", "approval"
    settings.UNCONFIRMED_VOTES = False
    user = UserFactory()
    address = EmailAddress.objects.create(user=user, email=user.email, primary=True)
    client = Client()
    client.force_login(user)
    assert "/accounts/email/" in client.get(place).text
    key = EmailConfirmationHMAC.create(address).key
    for leads_to in (place, "/"):  # once
        assert client.post(f"/accounts/confirm-email/{key}/").url == leads_to
        EmailAddress.objects.update(verified=False)


def test_tab_goes_from_the_address_to_the_password(client):
    page = client.get("/accounts/login/").text
    places = [page.index(one) for one in ('name="login"', 'name="password"', "/password/reset/")]
    assert places == sorted(places)
    assert page.count("/password/reset/") == 1
    assert "id_password_helptext" not in page


def test_the_page_to_sign_up_has_one_button_for_it(client, db):
    link = 'href="/accounts/signup/"'
    assert link in client.get("/").text.split("<main")[0]
    header, content = client.get("/accounts/signup/").text.split("<main")
    assert link not in header
    assert content.count('id="sign-up"') == 1
    assert client.get("/accounts/login/").text.split("<main")[0].count("button quiet") >= 1


def test_an_address_that_is_not_there_offers_to_sign_in(client, as_alice, db):
    (link,) = re.findall(r'id="sign-in-here" href="([^"]*)"', Client().get("/nowhere/").text)
    assert link.startswith("/accounts/login/?next=")
    assert "nowhere" in link
    assert 'id="sign-in-here"' not in as_alice.get("/nowhere/").text


ALLAUTH = Path(allauth.__file__).parent / "templates"
OTHER_PAGES = re.compile(
    r"/(base_\w+|base|trust|email_change|phone\w*|confirm_phone\w*|confirm_\w*code|login_code\w*"
    r"|password_reset_code\w*|request_login_code|signup_by_passkey|signup_form|login"
    r"|authentication_error|login_redirect|download|already_logged_in|warn_no_email"
    r"|email_confirmation_signup\w*|scripts|login_script|login_extra|provider_list"
    r"|account_(dis)?connected(_other|_updated)?|login_code_sent|phone_verif\w+)\.\w+$"
)
"""Templates of allauth without words, for what is switched off here, or said by our redirects."""


@pytest.mark.parametrize("folder", ["account", "mfa", "socialaccount", "usersessions"])
def test_every_page_and_email_about_signing_in_is_in_the_sites_words(folder):
    for path in sorted((ALLAUTH / folder).rglob("*.*")):
        name = path.relative_to(ALLAUTH).as_posix()
        is_email = "/email/account_" in name
        if is_email or name == "account/login.html" or not OTHER_PAGES.search(name):
            assert get_template(name).origin.name.startswith(str(settings.BASE_DIR / "templates"))


@pytest.mark.parametrize("name", ["email_password_mismatch", "too_many_login_attempts"])
def test_errors_of_signing_in_are_in_the_sites_words(name):
    own, theirs = Adapter.error_messages[name], DefaultAccountAdapter.error_messages[name]
    assert str(own) != str(theirs)
