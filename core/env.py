"""Read settings from the environment, with errors that name the variable."""

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

MAX_INTEGER = 1_000_000
"""The default upper limit of numbers. Anything larger is taken for a typing error."""
MAX_LINE_CHARS = 300
HOST_PATTERN = re.compile(
    r"\[?[0-9A-Fa-f:]*:[0-9A-Fa-f:.]+\]?|[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?"
)
CONTROL_PATTERN = re.compile(r"[\x00-\x1f\x7f]")
BLANK_OR_CONTROL_PATTERN = re.compile(r"[\s\x00-\x1f\x7f]")


class EnvError(ValueError):
    """Raised if a variable has an invalid value. The message is one line."""

    def __init__(self, line: str) -> None:
        super().__init__(line if len(line) <= MAX_LINE_CHARS else f"{line[:MAX_LINE_CHARS]} …")


def read_env_bool(name: str) -> bool:
    """Return the variable as True or False, from 1/0, true/false or yes/no; False if unset.

    Raises EnvError for any other value.
    """
    text = os.environ.get(name, "").strip().lower()
    if text in ("", "1", "true", "yes", "0", "false", "no"):
        return text in ("1", "true", "yes")
    raise EnvError(f"{name}={text!r} is not a yes or no. Write 1 or 0.")


def read_env_int(name: str, default: int, *, minimum: int = 0, maximum: int = MAX_INTEGER) -> int:
    """Return the variable as a whole number from `minimum` to `maximum`; `default` if unset.

    Raises EnvError for any other value.
    """
    text = os.environ.get(name, "")
    try:
        number = int(text) if text.strip() else default
    except ValueError:
        raise EnvError(f"{name}={text!r} is not a whole number.") from None
    if minimum <= number <= maximum:
        return number
    raise EnvError(f"{name}={number} is not from {minimum} to {maximum}.")


def read_env_choice(name: str, *choices: str) -> str:
    """Return the variable's value, which must be one of `choices`; the first if it is unset.

    Raises EnvError for any other value.
    """
    # An empty variable counts as unset, as compose files leave it.
    text = os.environ.get(name) or choices[0]
    if text in choices:
        return text
    raise EnvError(f"{name}={text!r} is none of: {', '.join(choices)}.")


def read_env_list(name: str) -> list[str]:
    """Return the variable's comma-separated words as a list; empty if unset."""
    return [word.strip() for word in os.environ.get(name, "").split(",") if word.strip()]


def read_env_networks(name: str) -> list[IPv4Network | IPv6Network]:
    """Return the variable's comma-separated networks, such as 10.0.0.0/8. Raises EnvError."""
    try:
        return [ip_network(word) for word in read_env_list(name)]
    except ValueError as error:
        raise EnvError(f"{name}: {error}. Write networks such as 10.0.0.0/8.") from None


def read_env_url(name: str, default: str = "", *, is_bare: bool = False) -> str:
    """Return the variable's http or https URL without a final slash; `default` if unset.

    Raises EnvError for other values. is_bare: whether the URL may have only a scheme, a host and a
    port.
    """
    text = os.environ.get(name) or default
    if not text or is_url(text, "http", "https", is_bare=is_bare):
        return text.rstrip("/")
    expected_form = "https://HOST" if is_bare else "https://HOST/PATH"
    raise EnvError(f"{name}={text!r} is not an address of the form {expected_form}.")


def is_url(text: str, *schemes: str, is_bare: bool = False) -> bool:
    """Return whether a text is a URL with one of the schemes, a host and an optional port.

    is_bare: whether to refuse a path, a query, a fragment and a user name.
    """
    try:
        url_parts = urlsplit(text)
        host, port = url_parts.hostname, url_parts.port
    except ValueError:  # brackets or a port that cannot be read
        return False
    # urlsplit removes tabs and line ends silently, so the text itself is searched for them.
    has_more = (
        url_parts.path.strip("/") or url_parts.query or url_parts.fragment or url_parts.username
    )
    return (
        url_parts.scheme in schemes
        and bool(host and HOST_PATTERN.fullmatch(host))
        and port != 0
        and not BLANK_OR_CONTROL_PATTERN.search(text)
        and not (is_bare and has_more)
    )


def read_env_origins(name: str) -> list[str]:
    """Return the variable's comma-separated origins, such as https://bench.example.org.

    Raises EnvError for other values.
    """
    for word in read_env_list(name):
        # Django takes a star for all names below a host.
        if not is_url(word.replace("://*.", "://", 1), "http", "https", is_bare=True):
            raise EnvError(f"{name}: {word!r} is not of the form https://HOST.")
    return [word.rstrip("/") for word in read_env_list(name)]


def read_env_hosts(name: str) -> list[str]:
    """Return the variable's comma-separated host names, without scheme and port. Raises EnvError.

    `.example.org` matches the domain and all its subdomains, `*` all names.
    """
    for word in read_env_list(name):
        if word != "*" and not HOST_PATTERN.fullmatch(word.removeprefix(".")):
            raise EnvError(
                f"{name}: {word!r} is not the name of a host. Write it without https://."
            )
    return read_env_list(name)


def read_env_host(name: str, default: str) -> str:
    """Return the variable's host name or IP address; `default` if unset. Raises EnvError."""
    text = os.environ.get(name) or default
    if HOST_PATTERN.fullmatch(text):
        return text
    raise EnvError(f"{name}={text!r} is not the name of a host.")


def read_env_currency(name: str, default: str) -> str:
    """Return the variable's currency code of three letters; `default` if unset. Raises EnvError."""
    text = os.environ.get(name) or default
    if re.fullmatch("[A-Z]{3}", text):
        return text
    raise EnvError(f"{name}={text!r} is not a currency's code of three capitals, such as EUR.")


def read_env_private_hosts(name: str) -> list[str]:
    """Return the variable's comma-separated host names, addresses and networks. Raises EnvError."""
    for word in read_env_list(name):
        if not (HOST_PATTERN.fullmatch(word) or _is_network(word)):
            raise EnvError(f"{name}: {word!r} is neither the name of a host nor a network.")
    return read_env_list(name)


def _is_network(word: str) -> bool:
    try:
        ip_network(word)
    except ValueError:
        return False
    return True


def read_env_class(name: str, default: str) -> str:
    """Return the dotted path of a class from an installed module; `default` if unset.

    Raises EnvError if the module cannot be found. The class itself is not imported.
    """
    path = os.environ.get(name) or default
    module = path.rpartition(".")[0]
    try:
        # Not imported: a backend of Django needs the settings, which are being read just now.
        if module and all(map(str.isidentifier, path.split("."))) and find_spec(module):
            return path
    except ImportError:  # of a package that the module is in
        pass
    raise EnvError(f"{name}={path!r} isn't a class of an installed library.")


def read_env_sender(name: str, default: str) -> str:
    """Return the variable's email address, which may have a name: `Dynabench <d@example.org>`.

    Returns `default` if unset. Raises EnvError for other values.
    """
    text = os.environ.get(name) or default
    user, _, host = parseaddr(text)[1].rpartition("@")
    if user and HOST_PATTERN.fullmatch(host) and not CONTROL_PATTERN.search(text):
        return text
    raise EnvError(f"{name}={text!r} is not an address of mails. Write one like d@example.org.")


def read_env_file(name: str) -> str:
    """Return the variable's path of a readable text file; "" if unset. Raises EnvError."""
    path = os.environ.get(name, "")
    if path:
        _read_text_file(name, path)
    return path


def make_folder(name: str, folder: Path) -> Path:
    """Create the folder if missing, accessible only to its owner, and return it. Raises EnvError.

    name: the variable to name in the error.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise EnvError(f"{name}: {folder} cannot be made: {error.strerror}.") from None
    return folder


ROLES = ("owner", "editor", "reviewer", "viewer", "annotator", "writer", "judge")
"""The roles in a task, the strongest first."""
ADMINISTRATOR_ENTRY = ("", "administrator")


def read_env_roles(name: str) -> dict[str, list[tuple[str, str]]]:
    """Return the roles that a variable assigns to each group.

    The value is a comma-separated list of GROUP=TASK:ROLE and GROUP=administrator. Each group has
    (task, role) pairs; the task is "" for administrators. Raises EnvError for other values.
    """
    pairs_by_group: dict[str, list[tuple[str, str]]] = {}
    for entry in read_env_list(name):
        # From the right: names of groups may hold "=", as those of LDAP do.
        group, _, role_text = entry.rpartition("=")
        task, _, role = role_text.rpartition(":")
        if not group or not ((task, role) == ADMINISTRATOR_ENTRY or (task and role in ROLES)):
            raise EnvError(
                f"{name}: {entry!r} is neither GROUP=TASK:ROLE nor GROUP=administrator. "
                f"Roles: {', '.join(ROLES)}."
            )
        pairs_by_group.setdefault(group, []).append((task, role))
    return pairs_by_group


def read_env_secret(name: str) -> str:
    """Return the secret in the variable NAME, or in the file that NAME_FILE names; "" if unset.

    Raises EnvError if the file is empty or cannot be read.
    """
    path = os.environ.get(f"{name}_FILE")
    if not path:
        return os.environ.get(name, "")
    if secret := _read_text_file(f"{name}_FILE", path).strip():
        return secret
    raise EnvError(f"{name}_FILE={path!r} is empty.")


def _read_text_file(name: str, path: str) -> str:
    """Return the text of the file that a variable names. Raises EnvError.

    name: the variable to name in the error.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise EnvError(f"{name}={path!r} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise EnvError(f"{name}={path!r} is not a text file in UTF-8.") from None


def read_cache_address() -> str:
    """Return CACHE_URL; "" without a shared cache. Raises EnvError.

    It may contain a password, so error messages do not include it.
    """
    url = read_env_secret("CACHE_URL")
    is_socket = url.startswith("unix://") and len(url) > len("unix://")
    if not url or is_socket or is_url(url, "redis", "rediss"):
        return url
    # The address is not repeated here, as it may hold a password.
    raise EnvError("CACHE_URL must be redis://HOST:PORT, rediss://… or unix:///PATH.")


def read_ray_address() -> str:
    """Return RAY_ADDRESS, the address of a Ray cluster; "" without one. Raises EnvError."""
    text = os.environ.get("RAY_ADDRESS", "")
    url = text if "://" in text else f"ray://{text}"
    # Ray's own words: a cluster that runs already, and one that Ray starts on this machine.
    if text in ("", "auto", "local") or is_url(url, "ray", "http", "https"):
        return text
    raise EnvError(f"RAY_ADDRESS={text!r} is not of the form HOST:PORT or ray://HOST:PORT.")


def read_or_make_secret(path: Path) -> str:
    """Return the secret in a file that only its owner can read; create it if missing.

    Processes that start together get the same secret, and a full disk leaves no file behind. Raises
    EnvError if the file is empty.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        descriptor, temporary_path = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}-")
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_urlsafe(48))
                file.flush()
                # Before the link: after a crash the name must not lead to an empty file.
                os.fsync(descriptor)
            with suppress(FileExistsError):  # another was first
                os.link(temporary_path, path)  # all of it or nothing
        finally:
            os.unlink(temporary_path)
    # Whoever lost the race reads the winner's secret.
    if secret := path.read_text().strip():
        return secret
    raise EnvError(f"{path} is empty. Restore it, or delete it to sign everyone out.")


SQLITE_OPTIONS = {
    # A transaction that begins as a reader and then writes may fail without waiting.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
}

# PostgreSQL plans a short statement for longer than it runs it.
PREPARED_STATEMENT_OPTIONS = {"server_side_binding": True, "prepare_threshold": 5}


DATABASE_FORM_MESSAGE = (
    "DATABASE_URL must be sqlite:///PATH or postgres://USER:PASSWORD@HOST:PORT/NAME."
)


def parse_database_url(
    url: str, *, has_prepared_statements: bool = False, is_pooled: bool = False
) -> dict[str, Any]:
    """Return Django's database entry for sqlite:///PATH or postgres://user:password@host:port/name.

    has_prepared_statements: whether PostgreSQL caches the plans of frequent queries. Use it only
    in web processes, because an import would keep using a plan made for an empty table. is_pooled:
    whether each transaction may get another connection from a pooler. Connections then have no
    plans and no cursors, and the database role sets the lock_timeout. Raises EnvError for other
    URLs.
    """
    try:
        url_parts = urlsplit(url)
        port = str(url_parts.port or "")
    except ValueError:  # a port or brackets that cannot be read
        raise EnvError(DATABASE_FORM_MESSAGE) from None
    if url_parts.scheme == "sqlite" and len(url_parts.path) > 1:
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": url_parts.path[1:],  # sqlite:////absolute/path or sqlite:///relative/path
            "CONN_MAX_AGE": 60,  # opening one takes milliseconds
            "OPTIONS": dict(SQLITE_OPTIONS),
            # In a file, so that the threads of a test see what they would see in real life.
            "TEST": {"NAME": f"{url_parts.path[1:]}.test"},
        }
    if url_parts.scheme in ("postgres", "postgresql") and len(url_parts.path) > 1:
        options: dict[str, Any] = {"connect_timeout": "5"}
        if not is_pooled:
            # A pooler refuses such an option, as its connections are shared.
            options["options"] = "-c lock_timeout=3000"
        options |= dict(parse_qsl(url_parts.query))
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(url_parts.path[1:]),
            "USER": unquote(url_parts.username or ""),
            "PASSWORD": unquote(url_parts.password or ""),
            "HOST": unquote(url_parts.hostname or options.pop("host", "")),
            "PORT": port,
            "CONN_MAX_AGE": 60,
            "CONN_HEALTH_CHECKS": True,
            "DISABLE_SERVER_SIDE_CURSORS": is_pooled,
            "OPTIONS": options
            | (PREPARED_STATEMENT_OPTIONS if has_prepared_statements and not is_pooled else {}),
        }
    raise EnvError(DATABASE_FORM_MESSAGE)


BUCKET_FORM_MESSAGE = (
    "is not of the form s3://BUCKET/FOLDER?endpoint=https://…&region=…&addressing=…"
)


def parse_object_storage_url(url: str) -> dict[str, Any]:
    """Return Django's storage entry for s3://bucket/folder?endpoint=https://HOST&region=NAME.

    `addressing=path` puts the bucket's name into the path of each request, `virtual` into the host
    name. The default is path with an `endpoint`, and virtual for AWS. Keys come from
    STORAGE_ACCESS_KEY and STORAGE_SECRET_KEY, or otherwise from the sources that the AWS library
    searches. Raises EnvError for other URLs.
    """
    try:
        url_parts = urlsplit(url)
    except ValueError:  # brackets that cannot be read
        raise EnvError(f"{url!r} {BUCKET_FORM_MESSAGE}") from None
    options = dict(parse_qsl(url_parts.query))
    known_options = {"endpoint", "region", "addressing"}
    endpoint = options.get("endpoint", "")
    if (
        url_parts.scheme != "s3"
        or not url_parts.netloc
        # A misspelt option stops the start: ignored, it would send files to a wrong place.
        or options.keys() - known_options
        or (endpoint and not is_url(endpoint, "http", "https"))
    ):
        raise EnvError(f"{url!r} {BUCKET_FORM_MESSAGE}")
    default_style = "path" if options.get("endpoint") else "auto"
    addressing_style = options.get("addressing", default_style)
    if addressing_style not in ("path", "virtual", "auto"):
        raise EnvError(
            f"addressing={addressing_style} is not known. Write path or virtual: {url!r}"
        )
    return {
        "BACKEND": "core.files.storage.object_storage.ObjectStorage",
        "OPTIONS": {
            "bucket_name": url_parts.netloc,
            "location": url_parts.path.strip("/"),
            "endpoint_url": options.get("endpoint"),
            "region_name": options.get("region"),
            "addressing": addressing_style,
            "access_key": os.environ.get("STORAGE_ACCESS_KEY"),
            "secret_key": read_env_secret("STORAGE_SECRET_KEY") or None,
        },
    }


def read_env_storage(name: str) -> dict[str, Any]:
    """Return Django's storage entry for the variable's bucket; for a local folder if unset.

    Raises EnvError.
    """
    url = os.environ.get(name)
    if not url:
        return {"BACKEND": "django.core.files.storage.FileSystemStorage"}
    try:
        return parse_object_storage_url(url)
    except EnvError as error:
        raise EnvError(f"{name}: {error}") from None


LOGGED_MAIL_BACKEND = "core.mail.transport.LoggedBackend"


def is_real_mail_backend(backend: str) -> bool:
    """Return whether a Django mail backend sends real mail, not to a terminal or a folder."""
    # By their module: Django calls the class EmailBackend in each of them.
    module_names = backend.split(".")[-2:-1]
    return backend != LOGGED_MAIL_BACKEND and module_names not in (
        ["console"],
        ["filebased"],
        ["dummy"],
    )


def build_site_url(host: str, *, is_https: bool, port: int) -> str:
    """Return the URL of the site. With https, a proxy serves it at the default port."""
    if is_https:
        return f"https://{host}"
    return f"http://{host}" if port == 80 else f"http://{host}:{port}"
