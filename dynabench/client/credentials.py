"""The server and the key: of an argument, of the environment, or stored by a login."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LOCAL_URL = "http://127.0.0.1:8000"


def find_keys_file() -> Path:
    """Return the path where `dynabench login` stores keys, readable only by the user."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "dynabench" / "keys.json"


def _read_stored() -> dict[str, Any]:
    """Return the stored logins; empty before the first. Raises ValueError."""
    try:
        credentials = json.loads(find_keys_file().read_text())
    except FileNotFoundError:
        return {}
    except ValueError:
        raise ValueError(f"{find_keys_file()} is damaged. Delete it and log in again.") from None
    return credentials if isinstance(credentials, dict) else {}


def find_server_url(url: str | None = None) -> str:
    """Return the server's URL without a trailing slash.

    The first of: `url`, DYNABENCH_URL, the server of the last login, a server on this machine.
    Raises ValueError for an invalid URL.
    """
    # The more explicit one goes first.
    address = url or os.environ.get("DYNABENCH_URL") or _read_stored().get("server") or LOCAL_URL
    if not address.startswith(("http://", "https://")):
        raise ValueError(f"{address}: write the server's address with http:// or https://.")
    return str(address).rstrip("/")


def find_api_key(url: str, key: str | None = None) -> str | None:
    """Return the key for a server: `key`, DYNABENCH_API_KEY, or that of the last login there.

    None without any of them.
    """
    return key or os.environ.get("DYNABENCH_API_KEY") or _read_stored().get("keys", {}).get(url)


def keep_key(url: str, key: str) -> None:
    """Store the key of a server, and make the server the default."""
    keys = _read_stored().get("keys", {})
    keys[url] = key
    _store({"server": url, "keys": keys})


def forget_key(url: str) -> bool:
    """Delete the stored key of a server; return whether there was one."""
    keys = _read_stored().get("keys", {})
    was_there = keys.pop(url, None) is not None
    if was_there:
        _store({"keys": keys})
    return was_there


def _store(credentials: Mapping[str, Any]) -> None:
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
