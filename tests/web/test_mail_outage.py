"""While the mail server is down: nobody's request fails, and everybody may ask again."""

import pytest
from allauth.account.models import EmailAddress
from django.contrib.messages import get_messages
from django.core import mail
from django.core.cache import cache

from core.accounts import adapter
from core.accounts.models import User
from core.mail import transport as limited_mail
from evaluation.models import Submission
from evaluation.submissions.emails import send_end_emails
from tests.support.factories import TaskFactory
from tests.support.outside import held
from tests.support.parts import free_port
from tests.support.submissions import submission_of

pytestmark = pytest.mark.django_db
LIMITED = "core.mail.transport.LimitedBackend"
NEW = {"email": "new@example.com", "password1": "correct horse battery"}


@pytest.fixture(autouse=True)
def mail_server(settings):
    """None listens; call it and one does."""
    cache.clear()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_PORT = free_port()

    def comes_back():
        settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"

    return comes_back


def told(response) -> list[str]:
    return [message.level_tag for message in get_messages(response.wsgi_request)]


def test_sign_up_goes_on_and_the_mail_can_be_asked_for_again(client, mail_server):
    response = client.post("/accounts/signup/", NEW)
    assert response.status_code == 302
    assert "error" in told(response)
    assert not any("sent to" in str(one) for one in get_messages(response.wsgi_request))
    assert client.get("/accounts/email/").status_code == 200  # signed in
    mail_server()
    client.post("/accounts/reauthenticate/", {"password": NEW["password1"]})
    client.post("/accounts/email/", {"action_send": "", "email": NEW["email"]})
    assert mail.outbox[-1].to == [NEW["email"]]


def test_where_addresses_must_be_confirmed_signing_in_sends_another(client, settings, mail_server):
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    response = client.post("/accounts/signup/", NEW)
    assert (response.status_code, response["Location"]) == (302, "/accounts/login/")
    assert "error" in told(response)
    mail_server()
    login = {"login": NEW["email"], "password": NEW["password1"]}
    assert client.post("/accounts/login/", login)["Location"] == "/accounts/confirm-email/"
    assert mail.outbox[-1].to == [NEW["email"]]


@pytest.mark.parametrize("address", ["alice@example.com", "nobody@example.com"])
def test_a_password_that_cannot_be_mailed(client, alice, mail_server, address):
    """The answer does not tell whether the address is known."""
    response = client.post("/accounts/password/reset/", {"email": address})
    assert response.status_code == 503
    assert response["Retry-After"]
    mail_server()
    assert client.post("/accounts/password/reset/", {"email": address}).status_code == 302
    assert len(mail.outbox) == 1


def test_a_notice_is_only_logged(as_alice, alice, caplog):
    alice.set_password("correct horse battery")
    alice.save()
    as_alice.force_login(alice)
    EmailAddress.objects.create(user=alice, email=alice.email, primary=True, verified=True)
    form = {
        "oldpassword": "correct horse battery", "password1": "staple horse battery",
        "password2": "staple horse battery",
    }  # fmt: skip
    assert as_alice.post("/accounts/password/change/", form).status_code == 302
    assert User.objects.get(pk=alice.pk).check_password("staple horse battery")
    assert [one.name for one in caplog.records if one.levelname == "ERROR"] == [adapter.__name__]


def test_owners_of_models_are_told_later(alice, mail_server):
    one = {"state": Submission.State.FAILED, "outcome": "rejected", "error": "Line 2"}
    submission_of(TaskFactory(code="nli"), alice, **one)
    assert send_end_emails() == 0
    mail_server()
    assert send_end_emails() == 1
    assert len(mail.outbox) == 1


def test_a_mail_server_that_hangs_is_away(client, alice, settings, monkeypatch):
    settings.EMAIL_BACKEND, settings.MAIL_TRANSPORT = LIMITED, settings.EMAIL_BACKEND
    with held(monkeypatch, limited_mail):
        response = client.post("/accounts/password/reset/", {"email": alice.email})
    assert response.status_code == 503


@pytest.mark.parametrize("transport", ["locmem", "smtp"])
def test_the_limited_backend_sends_by_the_one_that_was_named(settings, monkeypatch, transport):
    sent = []
    transport = f"django.core.mail.backends.{transport}.EmailBackend"
    monkeypatch.setattr(f"{transport}.send_messages", lambda _, all: sent.extend(all))
    settings.EMAIL_BACKEND, settings.MAIL_TRANSPORT = LIMITED, transport
    mail.send_mail("Subject", "Text", None, ["alice@example.com"])
    assert [one.to for one in sent] == [["alice@example.com"]]
