"""Attacks run on the same site as the tests of pages, with a provider by which people sign in."""

import pytest

from tests.support import openid
from tests.web.conftest import *  # noqa: F403
from tests.web.conftest import _fast_and_clean, _text_without_layout  # noqa: F401


@pytest.fixture(scope="module")
def provider_server():
    server = openid.Provider()
    yield server
    server.close()


@pytest.fixture
def provider(provider_server, settings):
    """An OpenID Connect provider by which people sign in here."""
    openid.use(provider_server, settings)
    return provider_server
