import pytest
from django.core.cache import cache
from django.http import HttpResponse

from tests.support.factories import PASSWORD, ContextFactory, RoundFactory, TaskFactory, UserFactory
from tests.support.pages import without_layout

HTMX = {"HTTP_HX_REQUEST": "true"}


@pytest.fixture(autouse=True)
def _fast_and_clean(settings):
    """Plain static names; no breaker or limit left over from another test."""
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }
    cache.clear()


@pytest.fixture(autouse=True)
def _text_without_layout(monkeypatch):
    """`response.text` of a page does not depend on how its template is broken into lines."""

    def text(response):
        found = response.content.decode(response.charset or "utf-8")
        return without_layout(found) if "html" in response.get("Content-Type", "") else found

    monkeypatch.setattr(HttpResponse, "text", property(text))


@pytest.fixture
def alice(db):
    return UserFactory(email="alice@example.com")


@pytest.fixture
def bob(db):
    return UserFactory(email="bob@example.com")


@pytest.fixture
def as_alice(client, alice):
    client.force_login(alice)
    return client


@pytest.fixture
def nli(db):
    """An open NLI round with three contexts."""
    round = RoundFactory(task=TaskFactory(code="nli"))
    ContextFactory.create_batch(3, round=round)
    return round


@pytest.fixture
def qa(db):
    round = RoundFactory(task=TaskFactory(code="qa"))
    passage = "Ada built the mill in 1840. The mill burned down. Ada left Tarn in 1850."
    ContextFactory(round=round, fields={"passage": passage})
    return round


@pytest.fixture
def sentiment(db):
    round = RoundFactory(task=TaskFactory(code="sentiment"))
    ContextFactory(round=round, fields={"prompt": "The soup was warm and cheap."})
    return round


@pytest.fixture
def hate(db):
    round = RoundFactory(task=TaskFactory(code="hate-speech"))
    ContextFactory(round=round, fields={"prompt": "The Zorbians moved in next door."})
    return round


@pytest.fixture
def password():
    return PASSWORD
