"""Reading settings from the environment, with errors that name the variable."""

import os
import secrets
import tempfile
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit


class EnvError(ValueError):
    """A variable holds something that the setting cannot be."""


def env_bool(name: str) -> bool:
    """True or False from 1/0, true/false, yes/no; False if unset. Raises EnvError otherwise."""
    text = os.environ.get(name, "").strip().lower()
    if text in ("", "1", "true", "yes", "0", "false", "no"):
        return text in ("1", "true", "yes")
    raise EnvError(f"{name}={text!r} is not a yes or no. Write 1 or 0.")


def env_int(name: str, default: int) -> int:
    """A whole number. Raises EnvError on anything else."""
    text = os.environ.get(name, "")
    try:
        return int(text) if text else default
    except ValueError:
        raise EnvError(f"{name}={text!r} is not a whole number.") from None


def env_choice(name: str, *choices: str) -> str:
    """One of the words; the first if unset. Raises EnvError on any other."""
    text = os.environ.get(name) or choices[0]
    if text in choices:
        return text
    raise EnvError(f"{name}={text!r} is none of: {', '.join(choices)}.")


def env_list(name: str) -> list[str]:
    """Comma-separated words."""
    return [word.strip() for word in os.environ.get(name, "").split(",") if word.strip()]


def env_networks(name: str) -> list[IPv4Network | IPv6Network]:
    """Comma-separated networks such as 10.0.0.0/8. Raises EnvError on anything else."""
    try:
        return [ip_network(word) for word in env_list(name)]
    except ValueError as error:
        raise EnvError(f"{name}: {error}. Write networks such as 10.0.0.0/8.") from None


ROLES = ("owner", "editor", "reviewer", "viewer", "annotator", "writer", "judge")
"""Of a task, the strongest first."""
ADMINISTRATOR = ("", "administrator")


def env_roles(name: str) -> dict[str, list[tuple[str, str]]]:
    """What groups give: GROUP=TASK:ROLE or GROUP=administrator, with commas; group to such pairs.

    The pair of administrators has an empty task. Raises EnvError on anything else.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for entry in env_list(name):
        group, _, given = entry.rpartition("=")
        task, _, role = given.rpartition(":")
        if not group or not ((task, role) == ADMINISTRATOR or (task and role in ROLES)):
            raise EnvError(
                f"{name}: {entry!r} is neither GROUP=TASK:ROLE nor GROUP=administrator. "
                f"Roles: {', '.join(ROLES)}."
            )
        found.setdefault(group, []).append((task, role))
    return found


def env_secret(name: str) -> str:
    """The secret in NAME, or in the file that NAME_FILE points to; empty when neither is set.

    Raises EnvError when the file is empty.
    """
    path = os.environ.get(f"{name}_FILE")
    if not path:
        return os.environ.get(name, "")
    if secret := Path(path).read_text().strip():
        return secret
    raise EnvError(f"{name}_FILE={path!r} is empty.")


def kept_secret(path: Path) -> str:
    """The secret kept in a file that only its owner can read; made at the first call.

    Processes that start together get the same one, and a full disk leaves no file behind. Raises
    EnvError when the file is empty.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        descriptor, made = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}-")
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_urlsafe(48))
                file.flush()
                os.fsync(descriptor)
            with suppress(FileExistsError):  # another was first
                os.link(made, path)  # all of it or nothing
        finally:
            os.unlink(made)
    if kept := path.read_text().strip():
        return kept
    raise EnvError(f"{path} is empty. Restore it, or delete it: then everybody signs in again.")


SQLITE_OPTIONS = {
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
}

# PostgreSQL plans a short statement for longer than it runs it.
PREPARED = {"server_side_binding": True, "prepare_threshold": 5}


def database(url: str, *, prepared: bool = False, pooled: bool = False) -> dict[str, Any]:
    """Django's database entry for sqlite:///PATH or postgres://user:password@host:port/name.

    With `prepared` PostgreSQL keeps the plans of what is often asked: for web processes, not for
    an import, which would go on by a plan made for an empty table. pooled: a pooler gives each
    transaction another connection, so nothing may be left on one: no plans, no cursors, and the
    role has the lock_timeout. Raises EnvError on any other form.
    """
    parts = urlsplit(url)
    if parts.scheme == "sqlite" and len(parts.path) > 1:
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": parts.path[1:],  # sqlite:////absolute/path or sqlite:///relative/path
            "CONN_MAX_AGE": 60,  # opening one takes milliseconds
            "OPTIONS": dict(SQLITE_OPTIONS),
            # In a file, so that the threads of a test see what they would see in real life.
            "TEST": {"NAME": f"{parts.path[1:]}.test"},
        }
    if parts.scheme in ("postgres", "postgresql") and len(parts.path) > 1:
        options: dict[str, Any] = {"connect_timeout": "5"}
        if not pooled:
            options["options"] = "-c lock_timeout=3000"
        options |= dict(parse_qsl(parts.query))
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(parts.path[1:]),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": unquote(parts.hostname or options.pop("host", "")),
            "PORT": str(parts.port or ""),
            "CONN_MAX_AGE": 60,
            "CONN_HEALTH_CHECKS": True,
            "DISABLE_SERVER_SIDE_CURSORS": pooled,
            "OPTIONS": options | (PREPARED if prepared and not pooled else {}),
        }
    raise EnvError(
        "DATABASE_URL must be sqlite:///PATH or postgres://USER:PASSWORD@HOST:PORT/NAME."
    )


def object_storage(url: str) -> dict[str, Any]:
    """Django's storage entry for s3://bucket/folder?endpoint=https://HOST&region=NAME.

    `addressing=path` puts the bucket's name into the path of each request, `virtual` into the name
    of the host. Without it, a server that `endpoint` names is asked by path, and AWS by host. Keys
    come from STORAGE_ACCESS_KEY and STORAGE_SECRET_KEY, else from where AWS's library looks.
    Raises EnvError on any other form.
    """
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    known = {"endpoint", "region", "addressing"}
    if parts.scheme != "s3" or not parts.netloc or options.keys() - known:
        raise EnvError(
            f"{url!r} is not of the form s3://BUCKET/FOLDER?endpoint=…&region=…&addressing=…"
        )
    usual = "path" if options.get("endpoint") else "auto"
    addressing = options.get("addressing", usual)
    if addressing not in ("path", "virtual", "auto"):
        raise EnvError(f"addressing={addressing} is not known. Write path or virtual: {url!r}")
    return {
        "BACKEND": "dynabench.lib.storage.object_storage.ObjectStorage",
        "OPTIONS": {
            "bucket_name": parts.netloc,
            "location": parts.path.strip("/"),
            "endpoint_url": options.get("endpoint"),
            "region_name": options.get("region"),
            "addressing": addressing,
            "access_key": os.environ.get("STORAGE_ACCESS_KEY"),
            "secret_key": env_secret("STORAGE_SECRET_KEY") or None,
        },
    }


def sends_mail(backend: str) -> bool:
    """Whether a backend of Django's brings mails to people, and not to a terminal or a folder."""
    return backend.split(".")[-2:-1] not in (["console"], ["filebased"], ["dummy"])


def site_url(host: str, *, https: bool, port: int) -> str:
    """Where people reach the site; https is served by a proxy, at its usual port."""
    if https:
        return f"https://{host}"
    return f"http://{host}" if port == 80 else f"http://{host}:{port}"
