"""Mails go out in the language of the person who gets them, whoever caused them."""

import pytest
from django.core import mail
from django.utils import translation

from core.accounts.languages import find_user_language
from core.accounts.models import User
from evaluation.models import EvaluationRun
from evaluation.submissions.emails import send_end_emails
from tasks.mails import mail_invitation, mail_members, mail_person
from tasks.models import TaskMember
from tests.support.evaluations import accepted_model, queued_run, set_version
from tests.support.factories import TaskFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _language_of_the_next_test(settings):
    """Leave the thread in English: a request of the test client leaves its own language."""
    with translation.override(settings.LANGUAGE_CODE):
        yield


def write():
    return translation.gettext("Judge"), translation.get_language()


@pytest.fixture
def sent(django_capture_on_commit_callbacks):
    """Return what the mails of a block say, by address."""

    def run(function, *args):
        mail.outbox.clear()
        with django_capture_on_commit_callbacks(execute=True):
            function(*args)
        return {message.to[0]: message.body.strip() for message in mail.outbox}

    return run


def test_each_member_gets_the_mail_in_their_language(sent):
    task = TaskFactory()
    members = {code: UserFactory(language=code) for code in ("de", "ar", "")}
    for user in members.values():
        TaskMember.objects.create(task=task, user=user, role="owner")
    with translation.override("fr"):  # of whoever caused it
        told = sent(mail_members, task, ["owner"], write)
    expected = {user.email: code or "en" for code, user in members.items()}
    assert told == expected


def test_an_unknown_language_is_the_sites_own(sent, settings):
    person = UserFactory(language="xx")
    assert sent(mail_person, person, write) == {person.email: settings.LANGUAGE_CODE}


def test_an_invitation_is_in_the_language_of_the_account_or_of_the_page(sent):
    known = UserFactory(language="es")
    with translation.override("de"):
        for address, code in ((known.email, "es"), ("new@example.org", "de")):
            (text,) = sent(mail_invitation, address, write).values()
            assert text.split()[0] == code


def test_what_the_queue_sends_is_in_the_persons_language(sent, nli):
    version = set_version(nli.task)
    model = accepted_model(nli.task, owner=UserFactory(language="de"))
    queued_run(model, version)
    EvaluationRun.objects.update(state="done", outcome="ok")
    in_german = sent(send_end_emails)
    User.objects.filter(pk=model.owner_id).update(language="en")
    type(model).objects.filter(pk=model.pk).update(told_at=None)
    in_english = sent(send_end_emails)
    assert in_german.keys() == in_english.keys() == {model.owner.email}
    assert in_german != in_english


def test_the_language_of_the_page_is_that_of_a_new_account(client, settings):
    settings.ACCOUNT_EMAIL_VERIFICATION = "none"
    password = "long enough, and odd"
    client.post(
        "/accounts/signup/",
        {"email": "ana@example.org", "password1": password, "password2": password},
        headers={"accept-language": "es"},
    )
    assert find_user_language(User.objects.get(email="ana@example.org")) == "es"


def test_who_chooses_a_language_gets_mails_in_it(client):
    person = UserFactory()
    client.post("/i18n/", {"language": "fr"})
    client.force_login(person)
    client.post("/i18n/", {"language": "nowhere"})
    person.refresh_from_db()
    assert person.language == ""
    client.post("/i18n/", {"language": "fr"})
    person.refresh_from_db()
    assert person.language == "fr"
