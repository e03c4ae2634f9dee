"""Whom a provider names must be one person, with an id that is one."""

import pytest
from allauth.socialaccount.models import SocialAccount

from core.accounts.models import User
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db
ADDRESS = "editor1@atk.test"


def refused(client, answer):
    """Whether the person is back at the page to sign in, signed out, and nothing was made."""
    assert (answer.status_code, answer.url) == (302, "/accounts/login/")
    assert client.get("/").wsgi_request.user.is_anonymous
    return not SocialAccount.objects.exists()


def test_userinfo_of_somebody_else_is_not_used(client, provider):
    UserFactory(email=ADDRESS)
    told = {"email": ADDRESS, "email_verified": True}
    for first, second in (("u5", "OTHER"), ("u5", None), (None, "u5"), ("", "u5"), ("u5", "U5")):
        answer = provider.come(client, told | {"sub": first}, {"sub": second})
        assert refused(client, answer), (first, second)
    assert refused(client, provider.come(client, told | {"sub": "u5"}, {}))
    assert refused(client, provider.come(client, told, {"sub": "u5"}))


@pytest.mark.parametrize("subject", [None, "", 5, True, "x" * 256, "x" * 5000, "a\0b", ["u"], {}])
def test_what_is_no_subject_names_nobody(client, provider, subject):
    told = {"sub": subject, "email": ADDRESS, "email_verified": True}
    for id_token in (told, None):
        assert refused(client, provider.come(client, told, id_token))
    assert not User.objects.filter(email=ADDRESS).exists()


@pytest.mark.parametrize("claims", [[], ["sub"], "u5", 5, None])
def test_claims_that_are_no_object_name_nobody(client, provider, claims):
    assert refused(client, provider.come(client, [claims], None))


def test_long_subjects_are_told_apart(client, provider):
    for last in "ab":
        told = {"sub": "x" * 254 + last, "email": f"{last}@atk.test", "email_verified": True}
        provider.come(client, told, {"sub": told["sub"]})
        assert client.get("/").wsgi_request.user.email == f"{last}@atk.test"
        client.logout()
    assert SocialAccount.objects.count() == 2


def test_a_token_for_several_is_taken_and_one_of_another_party_is_not(client, provider):
    """Keycloak tells a list of audiences, and names the client as the authorized party."""
    told = {"sub": "u5", "email": ADDRESS, "email_verified": True}
    several = {"sub": "u5", "aud": ["account", "site"]}
    for wrong in (several | {"azp": "other"}, several | {"azp": None}, {"sub": "u5", "aud": "x"}):
        assert refused(client, provider.come(client, told, wrong))
    provider.come(client, told, several | {"azp": "site"})
    assert client.get("/").wsgi_request.user.email == ADDRESS


def test_names_that_a_column_does_not_hold_are_not_kept(client, provider):
    odd = {"name": "n" * 5000, "given_name": 5, "family_name": "a\0b", "picture": {"a": "\0"}}
    told = {"sub": "u5", "email": ADDRESS, "email_verified": True, "groups": ["a\0b"], **odd}
    provider.come(client, told, {"sub": "u5"})
    user = client.get("/").wsgi_request.user
    assert (user.email, user.first_name, user.last_name) == (ADDRESS, "", "")
    assert "n" * 50 not in str(SocialAccount.objects.get().extra_data)
