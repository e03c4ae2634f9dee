"""Reading settings from the environment, with errors that name the variable."""

import os
import re
import secrets
import tempfile
from contextlib import suppress
from email.utils import parseaddr
from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

LARGEST = 1_000_000
"""The largest number that is no slip of the pen."""
LONGEST_LINE = 300
HOST = re.compile(
    r"\[?[0-9A-Fa-f:]*:[0-9A-Fa-f:.]+\]?|[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?"
)
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")
UNSEEN = re.compile(r"[\s\x00-\x1f\x7f]")


class EnvError(ValueError):
    """Raised for a variable with an invalid value; the message is one line."""

    def __init__(self, line: str) -> None:
        super().__init__(line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} …")


def env_bool(name: str) -> bool:
    """Return True or False from 1/0, true/false, yes/no.

    False if unset. Raises EnvError otherwise.
    """
    text = os.environ.get(name, "").strip().lower()
    if text in ("", "1", "true", "yes", "0", "false", "no"):
        return text in ("1", "true", "yes")
    raise EnvError(f"{name}={text!r} is not a yes or no. Write 1 or 0.")


def env_int(name: str, default: int, *, minimum: int = 0, maximum: int = LARGEST) -> int:
    """Return a whole number from `minimum` to `maximum`. Raises EnvError on anything else."""
    text = os.environ.get(name, "")
    try:
        number = int(text) if text.strip() else default
    except ValueError:
        raise EnvError(f"{name}={text!r} is not a whole number.") from None
    if minimum <= number <= maximum:
        return number
    raise EnvError(f"{name}={number} is not from {minimum} to {maximum}.")


def env_choice(name: str, *choices: str) -> str:
    """Return the variable's value, which must be one of `choices`; the first if it is unset.

    Raises EnvError for any other value.
    """
    text = os.environ.get(name) or choices[0]
    if text in choices:
        return text
    raise EnvError(f"{name}={text!r} is none of: {', '.join(choices)}.")


def env_list(name: str) -> list[str]:
    """Return comma-separated words as a list."""
    return [word.strip() for word in os.environ.get(name, "").split(",") if word.strip()]


def env_networks(name: str) -> list[IPv4Network | IPv6Network]:
    """Return comma-separated networks such as 10.0.0.0/8. Raises EnvError on anything else."""
    try:
        return [ip_network(word) for word in env_list(name)]
    except ValueError as error:
        raise EnvError(f"{name}: {error}. Write networks such as 10.0.0.0/8.") from None


def env_url(name: str, default: str = "", *, is_bare: bool = False) -> str:
    """Return an http or https URL without a final slash. Raises EnvError for others.

    is_bare: whether the URL may have only a scheme, a host and a port.
    """
    text = os.environ.get(name) or default
    if not text or is_address(text, "http", "https", is_bare=is_bare):
        return text.rstrip("/")
    form = "https://HOST" if is_bare else "https://HOST/PATH"
    raise EnvError(f"{name}={text!r} is not an address of the form {form}.")


def is_address(text: str, *schemes: str, is_bare: bool = False) -> bool:
    """Return whether a text is a URL with one of the schemes, a host and an optional port."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:  # brackets or a port that cannot be read
        return False
    # urlsplit removes tabs and line ends silently, so the text itself is searched for them.
    has_more = parts.path.strip("/") or parts.query or parts.fragment or parts.username
    return (
        parts.scheme in schemes
        and bool(host and HOST.fullmatch(host))
        and port != 0
        and not UNSEEN.search(text)
        and not (is_bare and has_more)
    )


def env_origins(name: str) -> list[str]:
    """Return comma-separated origins such as https://bench.example.org. Raises EnvError."""
    for word in env_list(name):
        # Django takes a star for all names below a host.
        if not is_address(word.replace("://*.", "://", 1), "http", "https", is_bare=True):
            raise EnvError(f"{name}: {word!r} is not of the form https://HOST.")
    return [word.rstrip("/") for word in env_list(name)]


def env_hosts(name: str) -> list[str]:
    """Return comma-separated host names, without scheme and port. Raises EnvError.

    `.example.org` matches all its subdomains, `*` all names.
    """
    for word in env_list(name):
        if word != "*" and not HOST.fullmatch(word.removeprefix(".")):
            raise EnvError(
                f"{name}: {word!r} is not the name of a host. Write it without https://."
            )
    return env_list(name)


def env_host(name: str, default: str) -> str:
    """Return the name or the address of one host. Raises EnvError for others."""
    text = os.environ.get(name) or default
    if HOST.fullmatch(text):
        return text
    raise EnvError(f"{name}={text!r} is not the name of a host.")


def env_private_hosts(name: str) -> list[str]:
    """Return comma-separated host names, addresses and networks. Raises EnvError."""
    for word in env_list(name):
        if not (HOST.fullmatch(word) or _is_network(word)):
            raise EnvError(f"{name}: {word!r} is neither the name of a host nor a network.")
    return env_list(name)


def _is_network(word: str) -> bool:
    try:
        ip_network(word)
    except ValueError:
        return False
    return True


def env_class(name: str, default: str) -> str:
    """Return the dotted path of a class whose module is installed. Raises EnvError."""
    path = os.environ.get(name) or default
    module = path.rpartition(".")[0]
    try:
        # Not imported: a backend of Django needs the settings, which are being read just now.
        if module and all(map(str.isidentifier, path.split("."))) and find_spec(module):
            return path
    except ImportError:  # of a package that the module is in
        pass
    raise EnvError(f"{name}={path!r} names no class of an installed library.")


def env_sender(name: str, default: str) -> str:
    """Return an email address, with an optional name: `Dynabench <d@example.org>`.

    Raises EnvError for others.
    """
    text = os.environ.get(name) or default
    user, _, host = parseaddr(text)[1].rpartition("@")
    if user and HOST.fullmatch(host) and not UNPRINTABLE.search(text):
        return text
    raise EnvError(f"{name}={text!r} is not an address of mails. Write one like d@example.org.")


def env_file(name: str) -> str:
    """Return the path of a readable file; "" if unset. Raises EnvError."""
    path = os.environ.get(name, "")
    if path:
        _read(name, path)
    return path


def make_folder(name: str, folder: Path) -> Path:
    """Create the folder that a variable names, accessible only to its owner. Raises EnvError."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise EnvError(f"{name}: {folder} cannot be made: {error.strerror}.") from None
    return folder


ROLES = ("owner", "editor", "reviewer", "viewer", "annotator", "writer", "judge")
"""Of a task, the strongest first."""
ADMINISTRATOR = ("", "administrator")


def env_roles(name: str) -> dict[str, list[tuple[str, str]]]:
    """Return the roles by group, from GROUP=TASK:ROLE or GROUP=administrator, comma-separated.

    Each group has (task, role) pairs; the task is "" for administrators. Raises EnvError for
    others.
    """
    pairs_by_group: dict[str, list[tuple[str, str]]] = {}
    for entry in env_list(name):
        # From the right: names of groups may hold "=", as those of LDAP do.
        group, _, role_text = entry.rpartition("=")
        task, _, role = role_text.rpartition(":")
        if not group or not ((task, role) == ADMINISTRATOR or (task and role in ROLES)):
            raise EnvError(
                f"{name}: {entry!r} is neither GROUP=TASK:ROLE nor GROUP=administrator. "
                f"Roles: {', '.join(ROLES)}."
            )
        pairs_by_group.setdefault(group, []).append((task, role))
    return pairs_by_group


def env_secret(name: str) -> str:
    """Return the secret in NAME, or in the file that NAME_FILE names; "" if neither is set.

    Raises EnvError if the file is empty or cannot be read.
    """
    path = os.environ.get(f"{name}_FILE")
    if not path:
        return os.environ.get(name, "")
    if secret := _read(f"{name}_FILE", path).strip():
        return secret
    raise EnvError(f"{name}_FILE={path!r} is empty.")


def _read(name: str, path: str) -> str:
    """Return the text of the file that a variable names. Raises EnvError."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise EnvError(f"{name}={path!r} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise EnvError(f"{name}={path!r} is not a text file in UTF-8.") from None


def cache_address() -> str:
    """Return CACHE_URL; "" without a shared cache. Raises EnvError.

    It may contain a password, so error messages do not include it.
    """
    url = env_secret("CACHE_URL")
    is_socket = url.startswith("unix://") and len(url) > len("unix://")
    if not url or is_socket or is_address(url, "redis", "rediss"):
        return url
    # The address is not repeated here, as it may hold a password.
    raise EnvError("CACHE_URL must be redis://HOST:PORT, rediss://… or unix:///PATH.")


def ray_address() -> str:
    """Return RAY_ADDRESS; "" without a cluster. Raises EnvError."""
    text = os.environ.get("RAY_ADDRESS", "")
    url = text if "://" in text else f"ray://{text}"
    # Ray's own words: a cluster that runs already, and one that Ray starts on this machine.
    if text in ("", "auto", "local") or is_address(url, "ray", "http", "https"):
        return text
    raise EnvError(f"RAY_ADDRESS={text!r} is not of the form HOST:PORT or ray://HOST:PORT.")


def kept_secret(path: Path) -> str:
    """Return the secret in a file that only its owner can read; create it if missing.

    Processes that start together get the same secret, and a full disk leaves no file behind. Raises
    EnvError if the file is empty.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}-")
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_urlsafe(48))
                file.flush()
                # Before the link: after a crash the name must not lead to an empty file.
                os.fsync(descriptor)
            with suppress(FileExistsError):  # another was first
                os.link(temporary, path)  # all of it or nothing
        finally:
            os.unlink(temporary)
    if secret := path.read_text().strip():
        return secret
    raise EnvError(f"{path} is empty. Restore it, or delete it: then everybody signs in again.")


SQLITE_OPTIONS = {
    # A transaction that begins as a reader and then writes may fail without waiting.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
}

# PostgreSQL plans a short statement for longer than it runs it.
PREPARED = {"server_side_binding": True, "prepare_threshold": 5}


DATABASE_FORM = "DATABASE_URL must be sqlite:///PATH or postgres://USER:PASSWORD@HOST:PORT/NAME."


def database(url: str, *, prepared: bool = False, pooled: bool = False) -> dict[str, Any]:
    """Return Django's database entry for sqlite:///PATH or postgres://user:password@host:port/name.

    prepared: whether PostgreSQL caches the plans of frequent queries. This is for web processes,
    not for an import, which would keep using a plan made for an empty table. pooled: whether a
    pooler gives each transaction another connection, so that no state may stay on one: no plans,
    no cursors, and the role has the lock_timeout. Raises EnvError for other URLs.
    """
    try:
        parts = urlsplit(url)
        port = str(parts.port or "")
    except ValueError:  # a port or brackets that cannot be read
        raise EnvError(DATABASE_FORM) from None
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
            # A pooler refuses such an option, as its connections are shared.
            options["options"] = "-c lock_timeout=3000"
        options |= dict(parse_qsl(parts.query))
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(parts.path[1:]),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": unquote(parts.hostname or options.pop("host", "")),
            "PORT": port,
            "CONN_MAX_AGE": 60,
            "CONN_HEALTH_CHECKS": True,
            "DISABLE_SERVER_SIDE_CURSORS": pooled,
            "OPTIONS": options | (PREPARED if prepared and not pooled else {}),
        }
    raise EnvError(DATABASE_FORM)


BUCKET_FORM = "is not of the form s3://BUCKET/FOLDER?endpoint=https://…&region=…&addressing=…"


def object_storage(url: str) -> dict[str, Any]:
    """Return Django's storage entry for s3://bucket/folder?endpoint=https://HOST&region=NAME.

    `addressing=path` puts the bucket's name into the path of each request, `virtual` into the host
    name. The default is path with an `endpoint`, and host for AWS. Keys come from
    STORAGE_ACCESS_KEY and STORAGE_SECRET_KEY, or else from where AWS's library looks. Raises
    EnvError for other URLs.
    """
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets that cannot be read
        raise EnvError(f"{url!r} {BUCKET_FORM}") from None
    options = dict(parse_qsl(parts.query))
    known_options = {"endpoint", "region", "addressing"}
    endpoint = options.get("endpoint", "")
    if (
        parts.scheme != "s3"
        or not parts.netloc
        # A misspelt option stops the start: ignored, it would send files to a wrong place.
        or options.keys() - known_options
        or (endpoint and not is_address(endpoint, "http", "https"))
    ):
        raise EnvError(f"{url!r} {BUCKET_FORM}")
    usual = "path" if options.get("endpoint") else "auto"
    addressing_style = options.get("addressing", usual)
    if addressing_style not in ("path", "virtual", "auto"):
        raise EnvError(
            f"addressing={addressing_style} is not known. Write path or virtual: {url!r}"
        )
    return {
        "BACKEND": "core.files.storage.object_storage.ObjectStorage",
        "OPTIONS": {
            "bucket_name": parts.netloc,
            "location": parts.path.strip("/"),
            "endpoint_url": options.get("endpoint"),
            "region_name": options.get("region"),
            "addressing": addressing_style,
            "access_key": os.environ.get("STORAGE_ACCESS_KEY"),
            "secret_key": env_secret("STORAGE_SECRET_KEY") or None,
        },
    }


def env_storage(name: str) -> dict[str, Any]:
    """Return Django's storage entry for files: a bucket, or a folder if unset. Raises EnvError."""
    url = os.environ.get(name)
    if not url:
        return {"BACKEND": "django.core.files.storage.FileSystemStorage"}
    try:
        return object_storage(url)
    except EnvError as error:
        raise EnvError(f"{name}: {error}") from None


LOGGED_MAILS = "core.mail.transport.LoggedBackend"


def sends_mail(backend: str) -> bool:
    """Return whether a Django backend sends real mail, not to a terminal or a folder."""
    # By their module: Django calls the class EmailBackend in each of them.
    kind = backend.split(".")[-2:-1]
    return backend != LOGGED_MAILS and kind not in (["console"], ["filebased"], ["dummy"])


def site_url(host: str, *, https: bool, port: int) -> str:
    """Return the URL of the site. With https, a proxy serves it at the default port."""
    if https:
        return f"https://{host}"
    return f"http://{host}" if port == 80 else f"http://{host}:{port}"
