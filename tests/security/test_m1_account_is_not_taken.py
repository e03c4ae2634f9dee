"""Whoever has somebody's session does not get the account, and the old address gets it back."""

import re
from datetime import timedelta

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from core.accounts.models import ApiToken, LogEntry, Undo, User, confirm_address
from core.accounts.tidying import tidy_account_data
from core.accounts.tokens import create_token
from core.accounts.undo_services import KEEP_TIME, create_undo_link, find_undo, restore_account
from tests.support.factories import PASSWORD, UserFactory

pytestmark = pytest.mark.django_db
OLD, NEW = "ann@example.org", "thief@example.net"
EMAIL = "/accounts/email/"
ASKS = "/accounts/reauthenticate/"


@pytest.fixture
def ann():
    user = UserFactory(email=OLD)
    confirm_address(user)
    return user


@pytest.fixture
def thief(ann):
    """A browser with Ann's session, in which the password was not given lately."""
    stolen = Client()
    stolen.force_login(ann)
    return stolen


def knows_password(client):
    assert client.post(ASKS, {"password": PASSWORD}).status_code == 302
    return client


def add_confirmed(user, address):
    return EmailAddress.objects.create(user=user, email=address, verified=True)


def links():
    """The links that were mailed, by address, the newest last."""
    found = {}
    for one in mail.outbox:
        for link in re.findall(r"/account/undo/\S+/", one.body):
            found.setdefault(one.to[0], []).append(link)
    return found


def take(client, user):
    """Add an address, make it the primary, remove the old one: with the password."""
    add_confirmed(user, NEW)
    knows_password(client)
    client.post(EMAIL, {"action_primary": "", "email": NEW})
    client.post(EMAIL, {"action_remove": "", "email": OLD})
    user.refresh_from_db()
    assert user.email == NEW


@pytest.mark.parametrize(
    ("door", "data"),
    [
        (EMAIL, {"action_add": "", "email": NEW}),
        (EMAIL, {"action_primary": "", "email": "second@example.org"}),
        (EMAIL, {"action_remove": "", "email": "second@example.org"}),
        (EMAIL, {"action_send": "", "email": OLD}),
        ("/accounts/2fa/totp/activate/", {"code": "123456"}),
        ("/accounts/2fa/webauthn/add/", {"name": "key"}),
        ("/accounts/2fa/recovery-codes/generate/", {}),
        ("/account/tokens/", {"name": "t", "scopes": ["read"], "days": 9}),
        ("/me/data/delete/", {"sure": "yes"}),
    ],
)
def test_a_session_alone_changes_nothing(thief, ann, door, data):
    add_confirmed(ann, "second@example.org")
    before = [*EmailAddress.objects.order_by("pk").values("email", "primary")]
    answer = thief.post(door, data)
    assert (answer.status_code, answer.url.partition("?")[0]) == (302, ASKS)
    assert before == [*EmailAddress.objects.order_by("pk").values("email", "primary")]
    assert not (ApiToken.objects.exists())
    assert not (Authenticator.objects.exists())
    assert not (mail.outbox)
    assert User.objects.filter(pk=ann.pk).exists()


def test_a_session_of_an_administrator_alone_changes_no_account(client, ann):
    boss = UserFactory(email="boss@example.org", is_superuser=True)
    client.force_login(boss)
    change = reverse("admin:accounts_user_change", args=[ann.pk])
    data = {"email": NEW, "is_active": "on", "is_superuser": "on"}
    data |= {"date_joined_0": "2026-01-01", "date_joined_1": "00:00"}
    password = {"usable_password": "true", "password1": "correct horse 7"}
    many = {"action": "delete_selected", "_selected_action": [ann.pk], "post": "yes"}
    for door, told in (
        (change, data),
        (reverse("admin:accounts_user_changelist"), many),
        (reverse("admin:auth_user_password_change", args=[ann.pk]), password),
        (reverse("admin:accounts_user_delete", args=[ann.pk]), {"post": "yes"}),
        (reverse("admin:accounts_user_add"), {"email": "n@example.org", **password}),
    ):
        assert client.get(door).status_code == 200
        assert client.post(door, told).url.partition("?")[0] == ASKS, door
    ann.refresh_from_db()
    assert (ann.email, ann.is_superuser, ann.check_password(PASSWORD)) == (OLD, False, True)
    assert User.objects.count() == 2
    assert client.post(change, data).status_code == 302
    resumed = client.post(f"{ASKS}?next={change}", {"password": PASSWORD})
    assert resumed.status_code == 302
    ann.refresh_from_db()
    assert ann.email == NEW  # what was asked is done after the password


def test_a_password_is_changed_with_the_present_one(thief, ann):
    thief.post("/accounts/password/change/", {"oldpassword": "x", "password1": "correct horse 7"})
    ann.refresh_from_db()
    assert ann.check_password(PASSWORD)


def test_the_api_makes_no_token_for_a_session_alone(thief):
    told = {"name": "t", "scopes": ["read"], "days": 9}
    answer = thief.post("/api/v1/tokens/", told, "application/json")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "reauthenticate")


def test_the_old_address_gets_the_account_back_after_a_second_change(client, thief, ann):
    take(thief, ann)
    create_token(user=ann, name="theirs", scopes=["own"], days=90)
    Authenticator.objects.create(user=ann, type="totp", data={})
    SocialAccount.objects.create(user=ann, provider="oidc", uid="thief")
    key = links()[OLD][0]
    assert client.get(key).status_code == 200
    assert User.objects.get(pk=ann.pk).email == NEW  # a look, as of a mail's scanner, does nothing
    answer = client.post(key)
    addresses = EmailAddress.objects.filter(user=ann).values_list("email", "verified", "primary")
    assert [*addresses] == [(OLD, True, True)]
    ann.refresh_from_db()
    assert (ann.email, ann.has_usable_password()) == (OLD, False)
    assert thief.get("/").wsgi_request.user.is_anonymous
    left = (ApiToken, Authenticator, SocialAccount)
    assert not any(kind.objects.filter(user=ann).exists() for kind in left)
    assert LogEntry.objects.filter(action="person.restored", data__person=ann.pk).exists()
    form = client.get(answer.url, follow=True).redirect_chain[-1][0]
    client.post(form, {"password1": "correct horse 9", "password2": "correct horse 9"})
    ann.refresh_from_db()
    assert ann.check_password("correct horse 9")


def test_the_thiefs_own_links_do_nothing_after_that(client, thief, ann):
    take(thief, ann)
    thief.post("/accounts/password/change/", {
        "oldpassword": PASSWORD, "password1": "correct horse 7", "password2": "correct horse 7",
    })  # fmt: skip
    theirs = links()[NEW]
    assert theirs
    first = links()[OLD][0]
    assert client.post(theirs[-1]).status_code == 302  # the thief is quicker
    assert client.post(first).status_code == 302
    ann.refresh_from_db()
    assert ann.email == OLD
    for link in (*theirs, first, *links()[OLD]):
        assert client.post(link).status_code == 404, link
    ann.refresh_from_db()
    assert ann.email == OLD


def test_a_removed_address_is_told_if_it_was_confirmed(thief, ann):
    add_confirmed(ann, "second@example.org")
    EmailAddress.objects.create(user=ann, email="never@example.org")
    knows_password(thief)
    for address in ("second@example.org", "never@example.org"):
        thief.post(EMAIL, {"action_remove": "", "email": address})
    assert links().keys() == {OLD, "second@example.org"}


def test_an_unconfirmed_address_gets_no_link(thief, ann):
    EmailAddress.objects.filter(user=ann).update(verified=False)
    add_confirmed(ann, NEW)
    knows_password(thief).post(EMAIL, {"action_primary": "", "email": NEW})
    assert OLD in [one.to[0] for one in mail.outbox]
    assert not links()


def test_a_password_that_is_reset_by_another_address_is_undone_too(client, thief, ann):
    add_confirmed(ann, NEW)
    client.post("/accounts/password/reset/", {"email": NEW})
    (link,) = re.findall(r"/accounts/password/reset/key/\S+", mail.outbox[-1].body)
    form = client.get(link, follow=True).redirect_chain[-1][0]
    client.post(form, {"password1": "correct horse 7", "password2": "correct horse 7"})
    ann.refresh_from_db()
    assert ann.check_password("correct horse 7")
    client.post(links()[OLD][0])
    ann.refresh_from_db()
    assert not ann.has_usable_password()
    assert EmailAddress.objects.get(user=ann).email == OLD


def test_means_that_were_there_before_stay(client, ann):
    Authenticator.objects.create(user=ann, type="recovery_codes", data={}, created_at=long_ago())
    client.post(f"/account/undo/{create_undo_link(user=ann, address=OLD)}/")
    assert Authenticator.objects.filter(user=ann).count() == 1


def long_ago():
    return timezone.now() - KEEP_TIME


def test_links_end_after_seven_days(client, ann):
    key = create_undo_link(user=ann, address=OLD)
    assert find_undo(key)
    Undo.objects.update(made_at=long_ago())
    assert client.post(f"/account/undo/{key}/").status_code == 404
    tidy_account_data(100)
    assert not Undo.objects.exists()


def test_without_a_link_nothing_is_told(client, ann):
    key = create_undo_link(user=ann, address=OLD)
    gone = UserFactory()
    of_gone = create_undo_link(user=gone, address=gone.email)
    gone.delete()
    wrong = ("x", key[:-1], key.partition(":")[0], f"{key}x", of_gone)
    answers = {client.get(f"/account/undo/{one}/").text for one in wrong}
    codes = {client.post(f"/account/undo/{one}/").status_code for one in wrong}
    assert codes == {404}
    assert not any(OLD in answer for answer in answers)
    assert Undo.objects.filter(user=ann).exists()


def test_an_address_that_somebody_else_took_meanwhile(client, thief, ann):
    take(thief, ann)
    squatter = UserFactory(email=OLD)
    assert client.post(links()[OLD][0]).status_code == 302
    ann.refresh_from_db()
    assert (ann.email, User.objects.filter(pk=squatter.pk).exists()) == (OLD, False)


def test_an_address_that_its_owner_confirmed_elsewhere_stays_there(client, thief, ann):
    take(thief, ann)
    other = UserFactory(email=OLD)
    confirm_address(other)
    assert client.post(links()[OLD][0]).status_code == 200
    ann.refresh_from_db()
    assert (ann.email, User.objects.get(pk=other.pk).email) == (NEW, OLD)


def test_an_account_of_a_provider_is_asked_there(client, provider):
    """It has no password: a session alone would set one."""
    told = {"sub": "u5", "email": OLD, "email_verified": True}
    provider.come(client, told, {"sub": "u5"})
    door = "/account/reauthenticate/"
    for place, data in (
        ("/accounts/password/set/", {"password1": "correct horse 7"}),
        (EMAIL, {"action_add": "", "email": NEW}),
        ("/account/tokens/", {"name": "t", "scopes": ["read"], "days": 9}),
    ):
        assert client.post(place, data).url.partition("?")[0] in (ASKS, door), place
    answer = client.post("/api/v1/tokens/", {"name": "t", "scopes": ["read"]}, "application/json")
    assert answer.status_code == 403
    # somebody else at the provider, a sign-in of long ago or of no time that is told shows nothing
    now = int(timezone.now().timestamp())
    odd = [{"sub": "u5", "auth_time": one} for one in (5, None, str(now), True)]
    for claims in ({"sub": "u6", "auth_time": now}, {"sub": "u5"}, *odd):
        sent = client.get(f"{door}?next=/account/")
        provider.userinfo, provider.id_token = {**told, **claims}, claims
        provider.back(client, sent)
        assert client.post(EMAIL, {"action_add": "", "email": NEW}).status_code == 302
        assert not EmailAddress.objects.filter(email=NEW).exists()
    sent = client.get(f"{door}?next=/account/")
    provider.userinfo, provider.id_token = told, {"sub": "u5", "auth_time": now}
    assert provider.back(client, sent).url == "/account/"
    assert provider.asked["prompt"] == "login"
    client.post(EMAIL, {"action_add": "", "email": NEW})
    assert EmailAddress.objects.filter(email=NEW).exists()


def test_an_account_without_any_means_gets_a_password_by_mail(client, ann):
    ann.set_unusable_password()
    ann.save()
    client.force_login(ann)
    answer = client.post(EMAIL, {"action_add": "", "email": NEW})
    assert answer.url.partition("?")[0] == "/accounts/password/reset/"
    assert client.get("/account/reauthenticate/").url == ASKS


def reset_links(address):
    """Ask for a new password at the address; how many links were mailed to it."""
    mail.outbox.clear()
    assert Client().post("/accounts/password/reset/", {"email": address}).status_code == 302
    return sum(bool(re.search(r"/password/reset/key/", one.body)) for one in mail.outbox)


def test_a_new_password_goes_to_confirmed_addresses_alone(ann):
    """A second address with a slip of the pen belongs to somebody else, who could sign in by it."""
    EmailAddress.objects.create(user=ann, email=NEW, verified=False)
    assert (reset_links(NEW), reset_links(OLD)) == (0, 1)
    EmailAddress.objects.filter(email=NEW).update(verified=True)
    assert reset_links(NEW) == 1


def test_an_account_without_a_confirmed_address_resets_by_its_only_one():
    UserFactory(email="ben@example.org")
    assert reset_links("ben@example.org") == 1


def test_any_link_to_the_old_address_undoes_all_changes_since_the_first(client, ann):
    """The thief added a passkey, and half an hour later changed the password: a mail each."""
    before = timezone.now() - timedelta(hours=2)
    own = Authenticator.objects.create(user=ann, type="totp", data={})
    Authenticator.objects.filter(pk=own.pk).update(created_at=before)
    first = create_undo_link(user=ann, address=OLD)
    Undo.objects.update(made_at=timezone.now() - timedelta(minutes=30))
    theirs = Authenticator.objects.create(user=ann, type="webauthn", data={})
    Authenticator.objects.filter(pk=theirs.pk).update(
        created_at=timezone.now() - timedelta(minutes=30)
    )
    second = create_undo_link(user=ann, address=OLD)
    assert first != second
    restore_account(undo=find_undo(second))
    assert list(Authenticator.objects.filter(user=ann)) == [own]
