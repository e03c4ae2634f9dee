"""Each variable: a good value starts the site, any other is refused in a line that names it."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.env import EnvError
from tests.support.variables import variables

ROOT = Path(__file__).parents[3]
SETTINGS = str(ROOT / "dynabench" / "settings.py")
INTS = {
    "DISK_RESERVE_GIB": 0, "EMAIL_PORT": 1, "EVALUATION_CPUS": 1, "EVALUATION_CPU_HOUR_CENTS": 0,
    "EVALUATION_GPUS": 0, "EVALUATION_MEMORY_GIB": 1, "EVALUATION_SECONDS": 1,
    "KEEP_LEASES_DAYS": 1, "KEEP_LOG_DAYS": 1, "KEEP_MODELS_DAYS": 0, "KEEP_SESSIONS_DAYS": 1,
    "KEEP_UPLOADS_DAYS": 1, "LARGEST_UPLOAD_GIB": 1, "LIVE_CALLS": 1, "MODELS_GIB": 0,
    "MODEL_CACHE_GIB": 1, "NEW_TASKS_AT_ONCE": 0, "PORT": 1, "PRACTICE_MODELS": 0,
    "QUEUE_WORKERS": 1, "QUOTA_GIB": 0, "RAY_SHARD_EXAMPLES": 1, "REFUSED_SUBMISSIONS_PER_DAY": 1,
    "RETENTION_APPEAL_DAYS": 1, "SUBMISSIONS_PER_DAY": 0, "TRUSTED_PROXY_COUNT": 0,
    "UNCONFIRMED_QUOTA_GIB": 0, "WEB_CONCURRENCY": 1,
}  # fmt: skip
"""The smallest value of each."""
BOOLS = [
    "BEHIND_PROXY", "DEBUG", "EMAIL_USE_TLS", "HTTPS", "POOLER", "PREPARE_STATEMENTS",
    "SANDBOX_REQUIRED", "UNCONFIRMED_VOTES",
]  # fmt: skip
WORDS = {
    "EMAIL_VERIFICATION": "none", "LOG_FORMAT": "json", "LOG_LEVEL": "ERROR",
    "NEW_TASKS": "nobody", "PASSWORD_SIGN_IN": "administrators",
}  # fmt: skip
URLS = [
    "HF_ENDPOINT", "MODEL_SERVER_URL", "MTURK_URL", "OIDC_ISSUER", "OTEL_EXPORTER_OTLP_ENDPOINT",
    "PROLIFIC_URL", "SITE_URL", "ZENODO_URL",
]  # fmt: skip
NO_URLS = [
    "foo",
    "/path",
    "ftp://x",
    "https://",
    "http://a b",
    "http://x:99999",
    "http://[::1",
    "http://x:0",
]
PRIVATE = [f"{what}_PRIVATE_HOSTS" for what in ("PANEL", "SUBMISSION", "TARGET", "WEBHOOK")]
NO_HOSTS = ["https://a.example", "a.example:80", "a b", "-"]
FORMS = {
    "ALLOWED_HOSTS": ("*, .a.example,[::1],b.example", NO_HOSTS),
    "CACHE_URL": (
        "rediss://:secret@cache:6379/0",
        ["http://x", "redis://", "redis://x:99999", "cache"],
    ),
    "CSRF_TRUSTED_ORIGINS": (
        "https://*.a.example,http://b:8080",
        ["a.example", "https://a/b", "*"],
    ),
    "CURRENCY": ("JPY", ["euro", "eur", "€"]),
    "DATABASE_URL": (
        "postgres://a:b@db:5433/site",
        ["site.sqlite3", "postgres://db:port/site", "mysql://db/x", "postgres://[x/y"],
    ),
    "DEFAULT_FROM_EMAIL": ("Bench <a@b.example>", ["nobody", "a@", "a@b\nBcc: c@d.example"]),
    "EMAIL_BACKEND": (
        "django.core.mail.backends.smtp.EmailBackend",
        ["nosuch.Backend", "smtp", "django.nosuch.Backend", "a b.c"],
    ),
    "EMAIL_HOST": ("mail.example.org", NO_HOSTS),
    "METRICS_NETWORKS": ("10.0.0.0/8,::1", ["10.0.0.1/8", "here"]),
    "OIDC_ROLES": ("g=nli:judge", ["g", "g=nli:king"]),
    "RAY_ADDRESS": ("10.0.0.2:6379", ["a b", "ray://", "ftp://x"]),
    "SENTRY_DSN": ("", ["sentry", "https://sentry.example.org"]),
    "STORAGE_URL": (
        "s3://site/files?endpoint=https://a.example",
        ["/media", "s3://", "s3://x?endpoint=a.example", "s3://x?y=z", "s3://[x"],
    ),
    **dict.fromkeys(PRIVATE, (
        "10.0.0.0/8,a.example,10.0.0.5",
        ["https://a.example", "10.0.0.1/8", "a b"],
    )),
    **dict.fromkeys(URLS, ("https://a.example:8443/", NO_URLS)),
    **{name: (value, ["maybe", value.upper() + "X"]) for name, value in WORDS.items()},
    **dict.fromkeys(BOOLS, ("1", ["maybe", "2", "-1"])),
}  # fmt: skip
"""Of each variable a value that it may have, and some that it may not."""
FREE = {
    # Names, keys and paths, which may be anything.
    "ERASURE_LOG", "MODEL_CACHE", "OIDC_CLIENT_ID", "OIDC_GROUPS_CLAIM", "OIDC_NAME",
    "OIDC_SCOPES", "SP_BLEU_MODEL", "STATIC_ROOT", "STORAGE_ACCESS_KEY", "EMAIL_HOST_USER",
    # Secrets of any letters; what they open says whether they are right.
    "ADMIN_PASSWORD", "BACKUP_PASSPHRASE", "EMAIL_HOST_PASSWORD", "METRICS_TOKEN",
    "HF_TOKEN", "OIDC_CLIENT_SECRET", "SECRET_KEY", "SECRET_KEY_FALLBACKS", "STORAGE_SECRET_KEY",
    "ZENODO_TOKEN",
    # `setup` and the doctor tell of these; the last are read by the client.
    "ADMIN_EMAIL", "DOCKER_HOST", "DYNABENCH_API_KEY", "DYNABENCH_URL", "XDG_CONFIG_HOME",
}  # fmt: skip
FOLDERS = {"DYNABENCH_HOME": "/proc/none"}
FILES = {"PRIVACY_TEXT"} | {
    name for name in variables("core", "dynabench") if name.endswith("_FILE")
}
AT_START = FILES - {"ADMIN_PASSWORD_FILE", "BACKUP_PASSPHRASE_FILE"}
"""Files that the settings read; commands read the others when they need them."""


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    for name in variables("dynabench"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DYNABENCH_HOME", str(tmp_path))
    monkeypatch.setenv("STORAGE_URL", "s3://site")  # so that the file of its secret is read
    monkeypatch.setenv("OIDC_ISSUER", "https://sign-in.example")


def refusal(name, value):
    """The words with which the settings refuse a value; None: they take it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(name, value)
        try:
            runpy.run_path(SETTINGS)
        except EnvError as error:
            return str(error)
    return None


def is_named(told, name):
    return told is not None and name in told and "\n" not in told and len(told) < 400


def test_each_variable_has_a_form():
    """A new one comes with what it may be: `FREE` is no place for what can be checked."""
    known = {*INTS, *FORMS, *FREE, *FOLDERS, *FILES}
    assert variables("core", "dynabench", "tasks", "evaluation") == known


def test_what_is_wrong_is_named_and_what_is_right_is_taken(tmp_path):
    told = []
    for name, (right, wrong) in FORMS.items():
        told += [(name, right, refusal(name, right))] if refusal(name, right) else []
        told += [(name, value) for value in wrong if not is_named(refusal(name, value), name)]
    for name, least in INTS.items():
        told += [(name, least)] if refusal(name, str(least)) else []
        for value in (str(least - 1), "x", "1.5", "9" * 20, "9" * 5000):
            told += [] if is_named(refusal(name, value), name) else [(name, value[:20])]
    for name, folder in FOLDERS.items():
        told += [] if is_named(refusal(name, folder), name) else [name]
    no_text = tmp_path / "binary"
    no_text.write_bytes(b"\xff\xfe")
    for name in AT_START:
        for path in ("/nosuch", str(tmp_path), str(no_text)):
            told += [] if is_named(refusal(name, path), name) else [(name, path)]
    assert not told


@given(
    name=st.sampled_from([*INTS, *FORMS]),
    value=st.text(st.characters(exclude_characters="\0", codec="utf-8")),
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_variable_holds(name, value):
    """Either the settings take it, or one line names it: never a traceback."""
    told = refusal(name, value)
    assert told is None or is_named(told, name)


def test_secrets_are_not_repeated():
    for name, value in (
        ("CACHE_URL", "http://:s3cret@x"),
        ("DATABASE_URL", "mysql://a:s3cret@db/x"),
        ("SENTRY_DSN", "s3cret"),
    ):
        assert "s3cret" not in refusal(name, value)


@pytest.mark.parametrize("program", [("manage.py", "check"), ("-m", "gunicorn", "dynabench.wsgi")])
def test_a_program_stops_with_one_line(program, tmp_path):
    done = subprocess.run(
        [sys.executable, *program],
        cwd=ROOT,
        env=os.environ | {"DYNABENCH_HOME": str(tmp_path), "NEW_TASKS": "maybe"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode != 0
    assert "NEW_TASKS" in done.stderr
    assert "Traceback" not in done.stderr
    own = [line for line in done.stderr.splitlines() if not line.startswith("[")]
    assert len(own) == 1
