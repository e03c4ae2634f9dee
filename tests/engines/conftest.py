"""One window of each engine for all journeys; a picture of the page where one fails."""

import re
from contextlib import suppress

import pytest
from django.conf import settings
from django.core.cache import cache
from django.test import Client
from httpx import TransportError

from tests.support import engines
from tests.support.factories import UserFactory

MADE_BY = {"firefox": engines.firefox, "webkit": engines.webkit}
FAILED = pytest.StashKey[bool]()


def pytest_collection_modifyitems(items) -> None:
    for item in items:
        if "tests/engines/" in str(item.path):
            item.add_marker(pytest.mark.engines)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


@pytest.fixture(scope="package", params=sorted(MADE_BY))
def window(request, tmp_path_factory):
    """The window of one engine."""
    with MADE_BY[request.param](tmp_path_factory.mktemp(request.param)) as window:
        yield window


@pytest.fixture(autouse=True)
def _plain_and_fresh(settings):
    """Plain static names; no breaker or limit left over from another test."""
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }
    cache.clear()


@pytest.fixture
def alice(transactional_db):
    return UserFactory(email="alice@example.com")


def sign_in(page: engines.Engine, user) -> None:
    """Give the browser a session of that person."""
    client = Client()
    client.force_login(user)
    name = settings.SESSION_COOKIE_NAME
    page.sign_in(name, client.cookies[name].value)


@pytest.fixture
def page(window, live_server, alice, settings, request):
    """The window, on the site of this test and signed in as Alice."""
    window.origin = live_server.url
    window.resize(1280, 900)
    window.visit("/privacy/")
    window.run("localStorage.clear(); sessionStorage.clear()")
    sign_in(window, alice)
    yield window
    if request.node.stash.get(FAILED, False):
        folder = settings.HOME / "screenshots"
        folder.mkdir(exist_ok=True)
        name = re.sub(r"\W+", "-", request.node.name)
        with suppress(engines.Missed, TransportError):  # what failed may be the browser
            window.keep_picture(folder / f"{name}.png")
    faults = window.faults()
    window.visit_nothing()
    assert not faults, "\n".join(faults)
