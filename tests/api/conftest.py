import pytest
from rest_framework.test import APIClient

from core.accounts.tokens import create_token
from tests.web.conftest import *  # noqa: F403 - the same people and rounds
from tests.web.conftest import _fast_and_clean  # noqa: F401

SCOPES = ("read", "annotate", "submit", "own")


@pytest.fixture
def api_of():
    """`api_of(user, "read")`: a client that sends a token of that user with these scopes."""

    def client_of(user, *scopes):
        client = APIClient()
        if user is not None:
            _, key = create_token(user=user, name="tests", scopes=scopes or SCOPES, days=1)
            client.credentials(HTTP_AUTHORIZATION=f"Bearer {key}")
        return client

    return client_of


@pytest.fixture
def api(api_of, alice):
    """Alice's client with every scope."""
    return api_of(alice)


@pytest.fixture
def bobs(api_of, bob):
    """Bob's client with every scope."""
    return api_of(bob)


@pytest.fixture
def anybody():
    """A client without an account."""
    return APIClient()
