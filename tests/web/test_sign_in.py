"""Sign-in by an organisation's provider, against a real OpenID Connect server."""

import httpx
import pytest
from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount
from oidc_provider_mock import run_server_in_thread

from core.accounts.models import ApiToken, LogEntry, User
from core.accounts.tokens import create_token
from core.env import ROLES, EnvError, read_env_roles
from dynabench import sign_in
from tasks.models import TaskMember
from tests.support.factories import PASSWORD, UserFactory
from tests.support.outside import held

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the server's library
LOGIN = "/accounts/oidc/oidc/login/"


@pytest.fixture(scope="module")
def provider():
    with run_server_in_thread() as server:
        yield f"http://localhost:{server.server_port}"


@pytest.fixture
def oidc(provider, settings, nli):
    settings.OIDC_ISSUER, settings.OIDC_NAME = provider, "Campus"
    settings.OIDC_ROLES = {
        "ops": [("", "administrator")],
        "linguists": [("nli", "judge")],
        "leads": [("nli", "owner"), ("gone", "owner")],
    }
    app = {"provider_id": "oidc", "client_id": "site", "secret": "s", "name": "Campus"}
    app["settings"] = {"server_url": provider}
    of_provider = settings.SOCIALACCOUNT_PROVIDERS["openid_connect"] | {"APPS": [app]}
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": of_provider}
    return provider


def come(client, provider, email, *groups, verified=True):
    """Through the provider's own page, as a browser does; returns where the person arrives."""
    claims = {"email": email, "email_verified": verified, "groups": list(groups)}
    httpx.put(f"{provider}/users/{email}", json=claims).raise_for_status()
    asked = client.get(LOGIN)
    assert asked.url.startswith(provider), asked.url
    back = httpx.post(asked.url, data={"sub": email})
    return client.get(back.headers["location"].partition("testserver")[2])


def test_who_comes_by_the_provider_gets_an_account_and_the_roles_of_their_groups(client, oidc):
    UserFactory(email="boss@example.org", is_superuser=True)  # the last one would stay
    page = client.get("/accounts/login/?next=/t/nli/").text
    assert f'href="{LOGIN}?next=%2Ft%2Fnli%2F"' in page
    assert come(client, oidc, "mo@example.org", "linguists", "leads").status_code == 302
    user = User.objects.get(email="mo@example.org")
    assert client.get("/").wsgi_request.user == user
    assert (user.has_usable_password(), user.is_superuser) == (False, False)
    assert TaskMember.objects.select_effective().get(user=user).role == "owner"
    for groups, role, administers in ((["linguists", "ops"], "judge", True), (["x"], None, False)):
        client.logout()
        come(client, oidc, "mo@example.org", *groups)
        user.refresh_from_db()
        roles = list(TaskMember.objects.filter(user=user).values_list("role", flat=True))
        assert (roles, user.is_superuser) == ([role] if role else [], administers)
    done = LogEntry.objects.filter(data__person=user.pk).values_list("action", flat=True)
    assert {*done} == {
        "member.added", "member.changed", "member.removed",
        "person.administrator", "person.no_administrator",
    }  # fmt: skip
    assert SocialAccount.objects.get().user == user


def test_an_account_is_the_same_by_password_and_by_a_confirmed_address_alone(client, oidc):
    known = UserFactory(email="ann@example.org")
    come(client, oidc, "ann@example.org", verified=False)
    assert client.get("/").wsgi_request.user != known
    client.logout()
    SocialAccount.objects.all().delete()
    come(client, oidc, "ann@example.org")
    assert client.get("/").wsgi_request.user == known


def test_who_took_somebodys_address_before_them_loses_what_they_made_with_it(client, oidc):
    """Confirming addresses is optional there: the account was used without it."""
    first = UserFactory(email="ann@example.org")
    EmailAddress.objects.filter(user=first).update(verified=False)
    create_token(user=first, name="left behind", scopes=["read"], days=90)
    come(client, oidc, "ann@example.org")
    first.refresh_from_db()
    assert client.get("/").wsgi_request.user == first
    assert (first.has_usable_password(), ApiToken.objects.count()) == (False, 0)


def test_passwords_break_the_glass(client, oidc, settings):
    """The provider is down: administrators come in by password, and nobody else does."""
    settings.PASSWORD_SIGN_IN = "administrators"
    settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]["APPS"][0]["settings"] = {
        "server_url": "http://localhost:9"
    }
    answer = client.get(LOGIN)
    assert (answer.status_code, answer.url) == (302, "/accounts/login/")
    plain = UserFactory(email="plain@example.org")
    boss = UserFactory(email="boss@example.org", is_superuser=True)
    for user, comes in ((plain, False), (boss, True)):
        client.post("/accounts/login/", {"login": user.email, "password": PASSWORD})
        assert client.get("/").wsgi_request.user.is_authenticated == comes
    client.logout()
    new = {"email": "new@example.org", "password1": PASSWORD}
    assert f'href="{LOGIN}?' in client.post("/accounts/signup/", new).text
    assert not User.objects.filter(email="new@example.org").exists()


def test_a_new_password_goes_to_who_may_use_it(client, oidc, settings, mailoutbox):
    """Others are told where they sign in; whoever is signed in confirms changes by one."""
    settings.PASSWORD_SIGN_IN = "administrators"
    plain = UserFactory(email="plain@example.org")
    boss = UserFactory(email="boss@example.org", is_superuser=True)

    def asked_for(user):
        client.post("/accounts/password/reset/", {"email": user.email})
        return "/accounts/password/reset/key/" in mailoutbox.pop().body

    assert [asked_for(user) for user in (plain, boss)] == [False, True]
    client.post("/accounts/password/reset/", {"email": plain.email})
    assert "/accounts/login/" in mailoutbox[-1].body
    assert "/accounts/signup/" not in mailoutbox[-1].body
    client.force_login(plain)
    assert asked_for(plain)
    client.logout()
    settings.PASSWORD_SIGN_IN = "everybody"
    assert asked_for(plain)


def test_a_provider_that_hangs_is_down(client, oidc, monkeypatch):
    with held(monkeypatch, sign_in):
        answer = client.get(LOGIN)
    assert (answer.status_code, answer.url) == (302, "/accounts/login/")
    assert come(client, oidc, "later@example.org").status_code == 302


def test_roles_of_groups_are_read_or_the_start_stops(monkeypatch):
    monkeypatch.setenv("OIDC_ROLES", "ops=administrator, a=b=nli:owner,ops=qa:judge")
    assert read_env_roles("OIDC_ROLES") == {
        "ops": [("", "administrator"), ("qa", "judge")], "a=b": [("nli", "owner")]
    }  # fmt: skip
    for wrong in ("ops", "ops=owner", "ops=nli:king", "=nli:owner", "ops=:owner"):
        monkeypatch.setenv("OIDC_ROLES", wrong)
        with pytest.raises(EnvError, match="OIDC_ROLES"):
            read_env_roles("OIDC_ROLES")
    assert {*ROLES} == {*TaskMember.Role.values}
