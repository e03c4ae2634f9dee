"""Parts that hang: a socket takes each connection and stays silent, while many people ask."""

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client

from annotation.attempts import live_targets
from core import outside
from core.data import shared_cache
from core.errors import Invalid
from core.mail import transport as mail
from core.outside import ThreadSlots, limit_waiting_threads
from dynabench import sign_in
from dynabench.operations.soundness import health
from dynabench.operations.watching import facts
from evaluation.submissions import hub_card
from tasks.models import Generator, TargetModel
from tasks.targets import first_contact, send_test
from tasks.targets.endpoints.live import get_process_pool
from tests.support.factories import UserFactory, scripted_target
from tests.support.writing import URL, open_form
from tests.web.conftest import HTMX

pytestmark = pytest.mark.django_db(transaction=True)
SHARE, PEOPLE, SECONDS = 2, 6, 0.5


class Silent:
    """A server that answers nobody. most: how many waited for it at once."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._server.getsockname()[1]
        self.most = 0
        self._waiting: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self._server.accept()
            except OSError:
                return
            # Whoever left before this one came is gone: on a busy machine a thread for each
            # connection would notice that too late, and count both.
            self._waiting = {each for each in self._waiting if not has_left(each)}
            self._waiting.add(accepted)
            self.most = max(self.most, len(self._waiting))

    def close(self) -> None:
        self._server.close()


def has_left(waiting: socket.socket) -> bool:
    """Return whether the other side has closed a connection; reads what it sent."""
    waiting.setblocking(False)
    try:
        while waiting.recv(65536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        pass
    waiting.close()
    return True


class Site(NamedTuple):
    """What the parts need: settings, a way to patch, the silent server's address, a round."""

    settings: object
    patch: pytest.MonkeyPatch
    port: int
    round: object

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def of_mail(site: Site) -> Callable[[Client], object]:
    site.settings.EMAIL_BACKEND = "core.mail.transport.LimitedBackend"
    site.settings.MAIL_TRANSPORT = "django.core.mail.backends.smtp.EmailBackend"
    site.settings.EMAIL_HOST, site.settings.EMAIL_PORT = "127.0.0.1", site.port
    assert site.settings.EMAIL_TIMEOUT <= 10
    site.settings.EMAIL_TIMEOUT = SECONDS
    site.patch.setattr(mail, "_slots", ThreadSlots())
    emails = iter([UserFactory(email=f"p{n}@example.org").email for n in range(PEOPLE)])
    return lambda client: client.post("/accounts/password/reset/", {"email": next(emails)})


def of_sign_in(site: Site) -> Callable[[Client], object]:
    app = {"provider_id": "oidc", "client_id": "site", "secret": "s", "name": "Campus"}
    app["settings"] = {"server_url": site.url}
    of_provider = site.settings.SOCIALACCOUNT_PROVIDERS["openid_connect"] | {"APPS": [app]}
    site.settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": of_provider}
    site.settings.OIDC_ISSUER = site.url
    site.settings.SOCIALACCOUNT_REQUESTS_TIMEOUT = SECONDS
    site.patch.setattr(sign_in, "_slots", ThreadSlots())
    return lambda client: client.get("/accounts/oidc/oidc/login/")


def of_hub(site: Site) -> Callable[[Client], object]:
    site.settings.HUB_ENDPOINT = site.url
    assert hub_card.TIMEOUT_SECONDS <= 10
    site.patch.setattr(hub_card, "TIMEOUT_SECONDS", SECONDS)
    site.patch.setattr(hub_card, "_slots", ThreadSlots())

    def read(client: Client) -> None:
        with pytest.raises(Invalid):
            hub_card.fetch_card("org/name")

    read(Client())  # makes the pool of connections, which takes as long as the deadline here
    return read


def of_test(site: Site) -> Callable[[Client], object]:
    target = silent_target(site)
    assert send_test.TEST_SECONDS <= 20
    site.patch.setattr(send_test, "_slots", ThreadSlots())

    def ask(client: Client) -> None:
        with pytest.raises(send_test.NoAnswer):
            send_test.ask_within_budget(
                target, {"premise": "a", "hypothesis": "b"}, seconds=SECONDS
            )

    return ask


def of_contact(site: Site) -> Callable[[Client], object]:
    site.settings.TARGET_PRIVATE_HOSTS = ["127.0.0.1"]
    generator = Generator.objects.create(
        task=site.round.task, name="muse", adapter="http", url=site.url
    )
    assert first_contact.CONTACT_SECONDS <= 20
    site.patch.setattr(first_contact, "CONTACT_SECONDS", SECONDS)
    site.patch.setattr(send_test, "_slots", ThreadSlots())

    def contact(client: Client) -> None:
        assert not first_contact.try_generator(generator, None).is_answer

    return contact


def of_target(site: Site) -> Callable[[Client], object]:
    silent_target(site)
    for name, most in (("LIVE_WAIT_SECONDS", 10), ("LIVE_DEADLINE_SECONDS", 120)):
        assert getattr(site.settings, name) <= most
        setattr(site.settings, name, SECONDS)
    site.settings.LIVE_CALLS = SHARE
    site.patch.setattr(live_targets, "_waiting_slots", threading.BoundedSemaphore(SHARE))
    get_process_pool.cache_clear()
    people = iter([UserFactory(email=f"p{n}@example.org") for n in range(PEOPLE)])

    def write(client: Client) -> object:
        client.force_login(next(people))
        return client.post(URL, open_form(client, text="A sentence."), **HTMX)

    return write


def of_redis(site: Site) -> Callable[[Client], object]:
    assert shared_cache.TIMEOUT_SECONDS <= 2
    site.patch.setattr(shared_cache, "TIMEOUT_SECONDS", SECONDS)
    shared_cache.get_server_state.cache_clear()

    def ask(client: Client) -> None:
        shared = shared_cache.SharedCache(f"redis://127.0.0.1:{site.port}", {})
        shared.set("word", "well", 10)
        assert shared.get("word") == "well"

    return ask


def of_model_server(site: Site) -> Callable[[Client], object]:
    site.settings.MODEL_SERVER_URL = site.url
    assert health.MODEL_SERVER_SECONDS <= 5
    site.patch.setattr(health, "MODEL_SERVER_SECONDS", SECONDS)
    site.patch.setattr(health, "_slots", ThreadSlots())
    site.patch.setattr(
        facts, "read_or_count", lambda key, count: count()
    )  # as in the minute's first second
    target = scripted_target(site.round)
    TargetModel.objects.filter(pk=target.pk).update(url="", source="weights")

    def status(client: Client) -> object:
        answer = client.get("/status/")
        assert dict(answer.context["tasks"]) == {site.round.task.name: True}
        return answer

    return status


def silent_target(site: Site) -> TargetModel:
    target = scripted_target(site.round)
    TargetModel.objects.filter(pk=target.pk).update(adapter="http", url=site.url, options={})
    target.refresh_from_db()
    site.settings.TARGET_PRIVATE_HOSTS = ["127.0.0.1"]
    return target


@contextmanager
def closing(call: Callable[[Client], object]) -> Iterator[Callable[[], object]]:
    """The call with a client of its own and without a connection that stays."""

    def called() -> object:
        try:
            return call(Client())
        finally:
            connection.close()

    yield called


@pytest.mark.parametrize(
    "part",
    [of_mail, of_sign_in, of_hub, of_test, of_contact, of_target, of_redis, of_model_server],
)
def test_a_part_that_hangs_costs_a_bounded_share_for_seconds(part, settings, monkeypatch, nli):
    """Everybody is answered, most at once, and only a few wait for the part."""
    cache.clear()
    monkeypatch.setattr(outside, "PATIENCE_SECONDS", 0.0)
    limit_waiting_threads(SHARE)
    silent = Silent()
    try:
        call = part(Site(settings, monkeypatch, silent.port, nli))
        with closing(call) as called, ThreadPoolExecutor(PEOPLE) as pool:
            answers = [one.result() for one in [pool.submit(called) for _ in range(PEOPLE)]]
        assert 0 < silent.most <= (PEOPLE if part is of_redis else SHARE)
        codes = {answer.status_code for answer in answers if answer is not None}
        assert codes <= {200, 202, 302, 503}
    finally:
        limit_waiting_threads(None)
        silent.close()
        get_process_pool.cache_clear()
