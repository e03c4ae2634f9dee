"""A provider that does not confirm an address must not let anybody into its account."""

import pytest

from core.accounts.models import ApiToken
from core.accounts.tokens import create_token
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db
ADDRESS = "owner1@atk.test"


@pytest.fixture
def victim():
    user = UserFactory(email=ADDRESS)
    create_token(user=user, name="t", scopes=["read"], days=1)
    return user


@pytest.mark.parametrize("claim", ["false", "False", "True", "no", 0, 1, None, [], ["true"], {}])
@pytest.mark.parametrize("place", ["userinfo", "id_token"])
def test_only_true_or_its_text_confirms_an_address(client, provider, victim, claim, place):
    told = {"sub": "u3", "email": ADDRESS, "email_verified": claim}
    others = {"userinfo": {"sub": "u3"}, "id_token": {"sub": "u3"}} | {place: told}
    provider.come(client, **others)
    assert client.get("/").wsgi_request.user != victim
    assert ApiToken.objects.filter(user=victim).exists()


@pytest.mark.parametrize("claim", [True, "true"])
@pytest.mark.parametrize("place", ["userinfo", "id_token"])
def test_a_confirmed_address_is_the_account(client, provider, victim, claim, place):
    """Amazon Cognito tells texts, and ADFS tells the address in the id token only."""
    told = {"sub": "u3", "email": ADDRESS, "email_verified": claim}
    others = {"userinfo": {"sub": "u3"}, "id_token": {"sub": "u3"}} | {place: told}
    provider.come(client, **others)
    assert client.get("/").wsgi_request.user == victim


def test_sources_that_contradict_each_other_confirm_nothing(client, provider, victim):
    told = {"sub": "u3", "email": ADDRESS}
    for first, second in ((True, False), ("false", True), ("true", None)):
        provider.come(client, told | {"email_verified": first}, told | {"email_verified": second})
        assert client.get("/").wsgi_request.user != victim
        client.logout()


def test_what_confirms_another_address_does_not_confirm_this_one(client, provider, victim):
    other = {"sub": "u3", "email": "mine@atk.test", "email_verified": True}
    provider.come(client, {"sub": "u3", "email": ADDRESS}, other)
    assert client.get("/").wsgi_request.user != victim
