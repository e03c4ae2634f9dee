"""A part that is down is named, costs only itself, and takes one line of the log."""

import errno
import json
import logging
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from django.contrib.staticfiles.storage import ManifestStaticFilesStorage, staticfiles_storage
from django.db import InterfaceError, OperationalError, ProgrammingError, connection
from django.db.migrations.recorder import MigrationRecorder

from core.accounts.sessions import SessionStore
from core.errors import Unavailable
from core.web.outages import (
    BUSY_OUTAGE,
    DATABASE_OUTAGE,
    FULL_DISK_OUTAGE,
    UNWRITABLE_DISK_OUTAGE,
    OneLineFilter,
    find_outage,
    respond_unavailable,
)
from dynabench import health as views
from dynabench.operations.soundness import doctor, health
from tests.support.factories import RoundFactory, scripted_target
from tests.web.conftest import HTMX

pytestmark = pytest.mark.django_db
GONE = OperationalError("connection failed: refused\n\tIs the server running on that host?")


@pytest.fixture(autouse=True)
def _asked_each_time(monkeypatch):
    monkeypatch.setattr(views, "CACHE_SECONDS", -1.0)


@pytest.fixture
def lines(caplog):
    """What the log would hold."""
    caplog.handler.addFilter(one_line := OneLineFilter())
    yield caplog
    caplog.handler.removeFilter(one_line)


@pytest.mark.parametrize(
    ("error", "outage"),
    [
        (GONE, DATABASE_OUTAGE),
        (OperationalError("canceling statement due to lock timeout"), BUSY_OUTAGE),
        (OperationalError("deadlock detected"), BUSY_OUTAGE),
        (OperationalError("database is locked"), BUSY_OUTAGE),
        (OperationalError("could not read block 7"), DATABASE_OUTAGE),
        (OperationalError("database or disk is full"), FULL_DISK_OUTAGE),
        (OperationalError("attempt to write a readonly database"), UNWRITABLE_DISK_OUTAGE),
        (InterfaceError("connection already closed"), DATABASE_OUTAGE),
        (InterfaceError("wrong number of bindings"), None),
        (ProgrammingError("no such table"), None),
        (OSError(errno.ENOSPC, "No space left on device"), FULL_DISK_OUTAGE),
        (FileNotFoundError(errno.ENOENT, "gone"), None),
        (None, None),
    ],
)
def test_what_is_down(error, outage):
    assert find_outage(error) == outage


def fails(*args, **kwargs):
    raise GONE


@pytest.fixture
def as_alice_without_a_database(as_alice, monkeypatch):
    monkeypatch.setattr(SessionStore, "_get_session_from_db", fails)
    as_alice.raise_request_exception = False
    return as_alice


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["page", "htmx"])
def test_a_page_names_the_database(as_alice_without_a_database, lines, headers):
    """It fails before the view, in a middleware."""
    response = as_alice_without_a_database.get("/me/", **headers)
    assert response.status_code == 503
    assert response["Retry-After"] == "5"
    assert "database" in response.text
    assert ("<html" in response.text) == (not headers)
    (line,) = lines.records
    assert (line.exc_info, "Is the server" in line.getMessage()) == (None, False)
    assert "database: connection failed: refused" in line.getMessage()


def test_the_api_names_it(as_alice_without_a_database, lines):
    response = as_alice_without_a_database.get("/api/v1/tasks/")
    assert response.status_code == 503
    assert response["Retry-After"] == "5"
    assert response.json()["error"]["code"] == "database"
    assert len(lines.records) == 1


def test_what_needs_no_database_goes_on(client, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert client.get("/help/").status_code == 200
        assert client.get("/healthz/").json()["status"] == "ok"


def test_a_wrong_host_is_one_line(client, lines):
    response = client.get("/", headers={"host": "elsewhere.example"})
    assert response.status_code == 400
    (line,) = lines.records
    assert line.exc_info is None
    assert line.levelno == logging.WARNING


def test_all_parts_are_well(client, settings):
    settings.MODEL_SERVER_URL = "http://127.0.0.1:1"  # no open round needs it
    response = client.get("/readyz/")
    assert response.status_code == 200
    assert response.json()["parts"] == dict.fromkeys(health.PART_CHECKS, "ok")


def test_each_part_that_is_down_is_named(client, settings, monkeypatch, tmp_path):
    settings.MODEL_SERVER_URL = "http://127.0.0.1:1"
    settings.HOME = tmp_path / "gone"
    target = scripted_target(RoundFactory())
    type(target).objects.update(url="", source="weights")
    response = client.get("/readyz/")
    assert response.status_code == 503
    assert response["Retry-After"]
    parts = response.json()["parts"]
    assert [name for name, state in parts.items() if state != "ok"] == ["disk", "model server"]


def test_a_version_whose_migrations_did_not_run_is_not_ready(client, settings):
    settings.MODEL_SERVER_URL = "http://127.0.0.1:1"
    MigrationRecorder(connection).migration_qs.filter(app="upkeep").delete()
    response = client.get("/readyz/")
    assert response.status_code == 503
    assert response.json()["parts"]["schema"] == "down"
    assert "upkeep" in health.check_schema().message


def test_new_code_answers_nobody_before_its_migrations_and_then_opens_by_itself(
    monkeypatch, rf, django_assert_num_queries
):
    """Both versions stand behind one proxy, which asks `/healthz/`."""
    told = []

    def get(path, **headers):
        told.clear()
        body = served(rf.get(path, **headers).environ, lambda status, _: told.append(status))
        return (told or ["passed"])[0][:3], b"".join(body).decode()

    served = views.open_when_ready(lambda: lambda environ, _: [b"the site"])
    with monkeypatch.context() as away:
        away.setattr(views, "check_schema", fails)
        assert get("/")[1] == "the site"  # which names the database
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE django_migrations RENAME TO none_yet")
        assert get("/healthz/")[0] == "503"  # on an empty database, too
        cursor.execute("ALTER TABLE none_yet RENAME TO django_migrations")
    rows = MigrationRecorder(connection).migration_qs.filter(app="upkeep")
    applied = list(rows)
    rows.delete()
    status, body = get("/healthz/")
    assert (status, "upkeep" in json.loads(body)["reason"]) == ("503", True)
    assert get("/t/nli/write/")[0] == "503"
    assert json.loads(get("/api/v1/tasks/")[1])["error"]["code"] == "unavailable"
    assert get("/static/site.css")[1] == "the site"
    rows.bulk_create(applied)
    assert get("/")[1] == "the site"
    with django_assert_num_queries(0):
        assert get("/")[1] == "the site"


def test_new_code_answers_nobody_before_its_static_files_are_collected(settings, tmp_path, rf):
    """It then knows their names, although it began with the list of the former version."""
    font, made = "fonts/inter-latin.woff2", []
    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = settings.STORAGES | {
        "staticfiles": {
            "BACKEND": f"{ManifestStaticFilesStorage.__module__}.ManifestStaticFilesStorage"
        }
    }

    def collect(names):
        paths = {name: f"{name}.0123" for name in names}
        text = json.dumps({"paths": paths, "version": "1.1", "hash": ""})
        (tmp_path / "staticfiles.json").write_text(text)

    def get(path):
        told = []
        body = served(rf.get(path).environ, lambda status, _: told.append(status))
        return (told or ["passed"])[0][:3], b"".join(body).decode()

    sources = settings.BASE_DIR / "static"
    names = [str(path.relative_to(sources)) for path in sources.glob("**/*") if path.is_file()]
    assert doctor.check_static_files().state == "bad"
    collect(set(names) - {font})
    served = views.open_when_ready(lambda: made.append(1) or (lambda environ, _: [b"the site"]))
    with pytest.raises(ValueError, match=font):
        staticfiles_storage.url(font)
    status, body = get("/healthz/")
    assert (status, font in json.loads(body)["reason"]) == ("503", True)
    collect(names)
    assert get("/") == ("pas", "the site")
    assert len(made) == 2
    assert staticfiles_storage.url(font).endswith(".0123")
    (tmp_path / "staticfiles.json").unlink()
    assert get("/") == ("pas", "the site")  # it never asks again


def test_without_a_database_the_others_are_told(client, settings, monkeypatch):
    monkeypatch.setattr(health.connection, "cursor", fails)
    monkeypatch.setattr(health, "find_stuck_jobs", fails)
    monkeypatch.setitem(health.PART_CHECKS, "model server", fails)
    parts = client.get("/readyz/").json()["parts"]
    unknown = dict.fromkeys(("schema", "model server", "queue"), "unknown")
    well = dict.fromkeys(("cache", "disk", "stored files"), "ok")
    assert parts == {"database": "down", **well, **unknown}


class HangingStore:
    """A store of files that is away."""

    def exists(self, name):
        raise Unavailable("The store does not answer.", code="storage", detail="refused: 403")


def test_a_store_of_files_that_is_away_is_named(client, settings, monkeypatch):
    settings.MODEL_SERVER_URL = "http://127.0.0.1:1"
    monkeypatch.setattr(health, "default_storage", HangingStore())
    response = client.get("/readyz/")
    assert response.status_code == 503
    assert response.json()["parts"]["stored files"] == "down"
    assert "403" in health.check_stored_files().message


def test_while_a_part_hangs_only_one_thread_waits_for_it(client, settings, monkeypatch):
    settings.MODEL_SERVER_URL = "http://127.0.0.1:1"
    known = client.get("/readyz/").json()
    with views._reading_lock:
        assert client.get("/readyz/").json() == known


@pytest.mark.parametrize("code", ["database", "storage", "unavailable"])
def test_a_page_names_the_part_that_is_down(rf, code):
    error = Unavailable("Somebody has to look.", code=code)
    page = respond_unavailable(rf.get("/", headers={"accept": "text/html"}), error)
    assert page is not None
    shown = {name: name in page.text for name in ("database", "file storage", "Somebody")}
    parts = {"database": "database", "file storage": "storage", "Somebody": "unavailable"}
    assert shown == {name: part == code for name, part in parts.items()}


def test_a_model_server_that_answers(settings, tmp_path):
    (tmp_path / "health").write_text("ok")
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        settings.MODEL_SERVER_URL = f"http://127.0.0.1:{server.server_port}"
        assert health.check_model_server().message == settings.MODEL_SERVER_URL
        server.shutdown()
