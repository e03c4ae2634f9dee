"""Signing up and in: who learns what, what a wrong password costs, what a new password ends."""

import pytest
from django.contrib.auth.hashers import make_password
from django.core.management import call_command
from django.test import Client
from rest_framework.test import APIClient

from dynabench.accounts.models import ApiToken, User, confirm_address
from dynabench.accounts.tokens import create_token
from dynabench.env import sends_mail, site_url
from tests.support.factories import PASSWORD, UserFactory

NEW = "another good password"
SIGN_UP, SIGN_IN = "/accounts/signup/", "/accounts/login/"
SENT = "Confirmation email sent"


def key_of(user):
    return create_token(user=user, name="laptop", scopes=["read"], days=1)[1]


def works(key):
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {key}")
    return client.get("/api/v1/me/").status_code == 200


def test_a_token_needs_the_password_of_a_moment_ago(as_alice):
    asked = {"name": "laptop", "scopes": ["read"], "days": "90"}
    assert as_alice.get("/account/tokens/").status_code == 200
    answer = as_alice.post("/account/tokens/", asked)
    assert answer.url.startswith("/accounts/reauthenticate/")
    told = as_alice.post("/api/v1/tokens/", asked, content_type="application/json")
    assert (told.status_code, told.json()["error"]["code"]) == (403, "reauthenticate")
    assert not ApiToken.objects.exists()
    done = as_alice.post(answer.url, {"password": PASSWORD})  # goes on where it was
    assert done.status_code == 201
    told = as_alice.post("/api/v1/tokens/", asked, content_type="application/json")
    assert told.status_code == 201


def by_page(client, user):
    page = client.get("/accounts/password/change/")
    assert 'id="revokes-tokens"' in page.text
    asked = {"oldpassword": PASSWORD, "password1": NEW, "password2": NEW}
    assert client.post("/accounts/password/change/", asked).status_code == 302


def by_reset(client, user, mailoutbox):
    client.logout()
    client.post("/accounts/password/reset/", {"email": user.email})
    link = next(line for line in mailoutbox[-1].body.split() if "/password/reset/key/" in line)
    page = client.get(link, follow=True)
    assert 'id="revokes-tokens"' in page.text
    client.post(page.redirect_chain[-1][0], {"password1": NEW, "password2": NEW})


def by_admin(client, user):
    admin = Client()
    admin.force_login(UserFactory(is_superuser=True))
    asked = {"usable_password": "true", "password1": NEW, "password2": NEW}
    admin.post(f"/admin/accounts/user/{user.pk}/password/", asked)


def by_command(client, user, monkeypatch):
    monkeypatch.setattr("getpass.getpass", lambda prompt: NEW)
    call_command("changepassword", user.email)


@pytest.mark.parametrize("door", [by_page, by_reset, by_admin, by_command])
def test_a_new_password_ends_the_tokens(as_alice, alice, bob, door, mailoutbox, monkeypatch):
    confirm_address(alice)
    mine, bobs = key_of(alice), key_of(bob)
    more = {"by_reset": [mailoutbox], "by_command": [monkeypatch]}.get(door.__name__, [])
    door(as_alice, alice, *more)
    alice.refresh_from_db()
    assert alice.check_password(NEW)
    assert not works(mine)
    assert works(bobs)


def test_a_better_hash_of_the_same_password_ends_nothing(alice, settings):
    key = key_of(alice)
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.PBKDF2PasswordHasher",
        "django.contrib.auth.hashers.MD5PasswordHasher",
    ]
    User.objects.filter(pk=alice.pk).update(password=make_password(PASSWORD, hasher="md5"))
    alice.refresh_from_db()
    assert alice.check_password(PASSWORD)
    alice.refresh_from_db()
    assert alice.password.startswith("pbkdf2_sha256")
    assert works(key)


def test_wrong_passwords_lock_out_only_who_sends_them(client, alice):
    wrong = {"login": alice.email, "password": "a wrong password"}
    for _ in range(6):
        client.post(SIGN_IN, wrong)
    right = {"login": alice.email, "password": PASSWORD}
    assert client.post(SIGN_IN, right).status_code == 200  # this address waits
    assert client.post(SIGN_IN, right, REMOTE_ADDR="192.0.2.7").status_code == 302


def test_sign_up_tells_nobody_who_is_there(client, settings, alice):
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    answers = []
    for address in (alice.email, "new@example.com"):
        client = Client()
        answer = client.post(SIGN_UP, {"email": address, "password1": NEW}, follow=True)
        shown = answer.text.partition("<footer")[0].replace(address, "ADDRESS")
        answers.append((answer.redirect_chain, shown))
    assert answers[0][0] == answers[1][0]
    assert answers[0][1] == answers[1][1]
    assert User.objects.get(pk=alice.pk).check_password(PASSWORD)


@pytest.mark.parametrize(("kind", "is_sent"), [("console", False), ("locmem", True)])
def test_a_mail_that_only_goes_to_the_log_was_not_sent(client, settings, db, kind, is_sent):
    settings.EMAIL_BACKEND = f"django.core.mail.backends.{kind}.EmailBackend"
    asked = {"email": "new@example.com", "password1": NEW}
    pages = [
        client.post(SIGN_UP, asked, follow=True),
        client.post("/accounts/password/reset/", {"email": asked["email"]}, follow=True),
    ]
    assert (SENT.lower() in pages[0].text.lower()) == is_sent
    for page in pages:
        levels = [one.level_tag for one in page.context["messages"]]
        assert ("warning" in levels) != is_sent


def test_two_factors_say_how_to_go_on(client, db):
    client.post(SIGN_UP, {"email": "new@example.com", "password1": NEW})
    client.post("/accounts/reauthenticate/", {"password": NEW})
    page = client.get("/accounts/2fa/totp/activate/", follow=True)
    assert "Confirm your e-mail address first" in page.text
    confirm_address(User.objects.get(email="new@example.com"))
    assert "secret" in client.get("/accounts/2fa/totp/activate/").text.lower()


@pytest.mark.parametrize(
    ("backend", "sends"),
    [
        ("django.core.mail.backends.smtp.EmailBackend", True),
        ("anymail.backends.mailgun.EmailBackend", True),
        ("django.core.mail.backends.console.EmailBackend", False),
        ("django.core.mail.backends.filebased.EmailBackend", False),
    ],
)
def test_which_backends_send(backend, sends):
    assert sends_mail(backend) == sends


@pytest.mark.parametrize(
    ("https", "port", "address"),
    [
        (False, 8080, "http://localhost:8080"),
        (False, 80, "http://localhost"),
        (True, 8000, "https://localhost"),
    ],
)
def test_links_in_mails_lead_to_the_port(https, port, address):
    assert site_url("localhost", https=https, port=port) == address
