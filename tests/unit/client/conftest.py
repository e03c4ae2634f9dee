"""A server of the API's words that tests script, and the real API; nothing is sent anywhere."""

import json
from collections import deque

import httpx
import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections

from core.accounts.models import ApiToken
from core.accounts.tokens import create_token
from dynabench import AsyncDynabenchClient, DynabenchClient
from tasks.models import TaskMember
from tests.web.conftest import _fast_and_clean, alice, bob, nli  # noqa: F401 - fixtures


class Server:
    """Answers each request with the next of `answers`, or asks `route`; keeps what it was asked."""

    def __init__(self):
        self.asked: list[httpx.Request] = []
        self.answers: deque = deque()
        self.route = None

    def __call__(self, request):
        self.asked.append(request)
        answer = self.answers.popleft() if self.answers else self.route(request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def body(self, place=-1):
        """The JSON of a request."""
        return json.loads(self.asked[place].content)

    @property
    def lines(self):
        """Verb and path of each request."""
        return [f"{one.method} {one.url.path.removeprefix('/api/v1')}" for one in self.asked]


def good(data, status=200):
    return httpx.Response(status, json=data)


def bad(status, code="some_code", message="No.", fields=None, **headers):
    error = {"code": code, "message": message, "fields": fields or {}}
    return httpx.Response(status, json={"error": error}, headers=headers)


@pytest.fixture
def server():
    return Server()


@pytest.fixture(autouse=True)
def pauses(monkeypatch, tmp_path):
    """The seconds that were waited; nobody waits. And no key of the person who runs the tests."""
    waited = []

    async def awaited(seconds):
        waited.append(seconds)

    monkeypatch.setattr("dynabench.client.client.sleep", waited.append)
    monkeypatch.setattr("dynabench.client.client.sleep_awaiting", awaited)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("DYNABENCH_URL", raising=False)
    monkeypatch.delenv("DYNABENCH_API_KEY", raising=False)
    return waited


@pytest.fixture
def client(server):
    """A client of the scripted server."""
    with DynabenchClient("key", transport=httpx.MockTransport(server)) as client:
        yield client


@pytest.fixture
def awaiting(server):
    """The same, to be awaited."""
    return AsyncDynabenchClient("key", transport=httpx.MockTransport(server))


@pytest.fixture
def client_of(db):
    """`client_of(user, task, "editor")`: a client of the real API with every scope."""

    def made(user, task=None, role=None):
        if role:
            TaskMember.objects.create(task=task, user=user, role=role)
        _, key = create_token(user=user, name="tests", scopes=[*ApiToken.Scope], days=1)
        real = httpx.WSGITransport(app=WSGIHandler())
        return DynabenchClient(key, "http://testserver", transport=real, progress=False, retries=0)

    for signal in (request_started, request_finished):  # the connection is that of the test
        signal.disconnect(close_old_connections)
    yield made
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)
