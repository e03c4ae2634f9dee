"""Parts of a real installation are stopped under load: each costs only itself, and comes back."""

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest
from django.contrib.staticfiles.finders import get_finders

from tests.support.live import ROOT
from tests.support.parts import PATIENCE, Postgres, Redis, free_port, postgres_server, redis_server

pytestmark = pytest.mark.servers
PAGES = ("/", "/help/", "/api/v1/tasks/")
# There is no TLS, and reading the certificates of authorities takes longer than an answer.
get = partial(httpx.get, timeout=PATIENCE, verify=False)


def environment(home: Path, postgres: Postgres, redis: Redis) -> dict[str, str]:
    return {
        **os.environ,
        "DYNABENCH_HOME": str(home),
        "DATABASE_URL": postgres.url,
        "CACHE_URL": redis.url,
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "EMAIL_PORT": str(free_port()),  # nobody listens there
        "DEBUG": "0",
    }


def manage(env: dict[str, str], *words: str) -> None:
    command = [sys.executable, "manage.py", *words]
    subprocess.run(command, cwd=ROOT, env=env, check=True, stdout=subprocess.DEVNULL)


def name_static_files(folder: Path) -> None:
    """As `collectstatic`, which takes a minute: pages name files, and nobody asks for them here."""
    folder.mkdir(parents=True, exist_ok=True)
    names = {name: name for finder in get_finders() for name, _ in finder.list([])}
    manifest = {"paths": names, "version": "1.1", "hash": ""}
    (folder / "staticfiles.json").write_text(json.dumps(manifest))


@contextmanager
def web(env: dict[str, str], log: Path):
    """The site's address, for as long as the context lasts."""
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "dynabench.wsgi", "--no-control-socket"]
    command += ["--bind", f"127.0.0.1:{port}", "--threads", "8"]
    with log.open("wb") as out:
        server = subprocess.Popen(command, cwd=ROOT, env=env, stdout=out, stderr=out)
    url = f"http://127.0.0.1:{port}"
    try:
        until(lambda: answers(url))
        yield url
    finally:
        server.terminate()
        server.wait(PATIENCE)


def answers(url: str) -> bool:
    try:
        return get(f"{url}/healthz/").status_code == 200
    except httpx.TransportError:
        return False


def until(true) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


def parts(url: str) -> dict[str, str]:
    return get(f"{url}/readyz/").json()["parts"]


class Load:
    """Three visitors who read one page each, again and again, ten times a second at most."""

    def __init__(self, url: str) -> None:
        self._url, self._goes_on = url, True
        self.seen: Counter[tuple[str, int]] = Counter()
        self.without_retry = 0

    def _visit(self, page: str) -> None:
        with httpx.Client(base_url=self._url, timeout=PATIENCE) as client:
            while self._goes_on:
                response = client.get(page)
                time.sleep(0.1)
                self.seen[page, response.status_code] += 1
                self.without_retry += (
                    response.status_code == 503 and "Retry-After" not in response.headers
                )

    def __enter__(self) -> "Load":
        self._visitors = [threading.Thread(target=self._visit, args=(page,)) for page in PAGES]
        for visitor in self._visitors:
            visitor.start()
        return self

    def __exit__(self, *error) -> None:
        self._goes_on = False
        for visitor in self._visitors:
            visitor.join(PATIENCE)

    def statuses(self, page: str) -> set[int]:
        return {status for seen, status in self.seen if seen == page}

    def sees(self, count: int) -> None:
        """Until each page was answered so often again."""
        before = self.seen.copy()
        total = lambda seen, page: sum(n for (of, _), n in seen.items() if of == page)  # noqa: E731
        until(lambda: all(total(self.seen, p) >= total(before, p) + count for p in PAGES))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A migrated installation: its address, its servers and its log."""
    folder = tmp_path_factory.mktemp("outages")
    with postgres_server() as postgres, redis_server() as redis:
        env = environment(folder / "home", postgres, redis)
        manage(env, "migrate", "--verbosity=0")
        name_static_files(folder / "home" / "static")
        log = folder / "web.log"
        with web(env, log) as url:
            yield url, postgres, redis, log


def test_without_redis_nobody_sees_anything(site):
    url, _, redis, log = site
    with Load(url) as load:
        load.sees(3)
        redis.stop()
        load.sees(5)
        until(lambda: parts(url)["cache"] == "down")
        redis.start()
        until(lambda: parts(url)["cache"] == "ok")
    assert all(load.statuses(page) <= {200, 429} for page in PAGES), load.seen
    assert log.read_text().count("The cache is away") == 1


def test_without_a_database_it_is_named_and_what_needs_none_goes_on(site):
    url, postgres, _, log = site
    with Load(url) as load:
        load.sees(3)
        postgres.stop()
        load.sees(5)
        until(lambda: parts(url)["database"] == "down")  # what is told may be a second old
        assert answers(url)
        page = get(f"{url}/")
        assert (page.status_code, "database" in page.text) == (503, True)
        told = get(f"{url}/api/v1/tasks/")
        assert told.json()["error"]["code"] == "database"
        postgres.start()
        until(lambda: get(f"{url}/").status_code == 200)
        until(lambda: parts(url)["database"] == "ok")
    assert load.statuses("/help/") == {200}
    assert load.statuses("/") == {200, 503}
    assert load.statuses("/api/v1/tasks/") - {429} == {200, 503}
    assert load.without_retry == 0
    assert "Traceback" not in log.read_text()
