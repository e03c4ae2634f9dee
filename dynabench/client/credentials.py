"""The server's URL and the key: from an argument, the environment, or a stored login."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LOCAL_URL = "http://127.0.0.1:8000"


def find_keys_file() -> Path:
    """Return the path of the file where `dynabench login` stores keys.

    Only the user can read the file.
    """
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "dynabench" / "keys.json"


def _read_logins() -> dict[str, Any]:
    """Return the stored logins; empty before the first. Raises ValueError for a damaged file."""
    try:
        credentials = json.loads(find_keys_file().read_text())
    except FileNotFoundError:
        return {}
    except ValueError:
        raise ValueError(f"{find_keys_file()} is damaged. Delete it and log in again.") from None
    return credentials if isinstance(credentials, dict) else {}


def find_server_url(url: str | None = None) -> str:
    """Return the server's URL without a trailing slash.

    The first one that is set is used: `url`, DYNABENCH_URL or the server of the last login. If none
    is, the server is on this machine. Raises ValueError for an invalid URL.
    """
    # The more explicit one goes first.
    address = url or os.environ.get("DYNABENCH_URL") or _read_logins().get("server") or LOCAL_URL
    if not address.startswith(("http://", "https://")):
        raise ValueError(f"{address}: the server's URL must begin with http:// or https://.")
    return str(address).rstrip("/")


def is_server_chosen() -> bool:
    """Return whether DYNABENCH_URL or a login says which server to use."""
    return bool(os.environ.get("DYNABENCH_URL") or _read_logins().get("server"))


def find_api_key(url: str, key: str | None = None) -> str | None:
    """Return the key for a server: `key`, DYNABENCH_API_KEY, or the key of the last login there.

    Return None if there is none.
    """
    return key or os.environ.get("DYNABENCH_API_KEY") or _read_logins().get("keys", {}).get(url)


def store_key(url: str, key: str) -> None:
    """Store the key of a server, and make the server the default."""
    keys = _read_logins().get("keys", {})
    keys[url] = key
    _store_logins({"server": url, "keys": keys})


def delete_key(url: str) -> bool:
    """Delete the stored key of a server; return whether there was one.

    In that case, the stored default server is deleted, too.
    """
    keys = _read_logins().get("keys", {})
    was_stored = keys.pop(url, None) is not None
    if was_stored:
        # Without a server, so that the default is the local one again.
        _store_logins({"keys": keys})
    return was_stored


def _store_logins(credentials: Mapping[str, Any]) -> None:
    """Replace the key file atomically."""
    file = find_keys_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    # A name of its own, as another process may log in or out meanwhile; 0600 from the beginning.
    handle, name = tempfile.mkstemp(prefix=f"{file.name}.", dir=file.parent)
    try:
        with open(handle, "w") as target:
            json.dump(credentials, target)
        # Replaced at once: a reader finds the old file or the new one, whole.
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink()
        raise
