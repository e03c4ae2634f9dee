"""Which server is asked, and with which key: told, in the environment, or stored by a login."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LOCAL = "http://127.0.0.1:8000"


def keys_file() -> Path:
    """Where `dynabench login` keeps keys: readable by their owner alone."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "dynabench" / "keys.json"


def _stored() -> dict[str, Any]:
    try:
        found = json.loads(keys_file().read_text())
    except FileNotFoundError:
        return {}
    except ValueError:
        raise ValueError(f"{keys_file()} is damaged. Delete it and log in again.") from None
    return found if isinstance(found, dict) else {}


def server_url(url: str | None = None) -> str:
    """The address without a slash at its end: told, of DYNABENCH_URL, of the last login, or local.

    Raises ValueError for what is no address.
    """
    found = url or os.environ.get("DYNABENCH_URL") or _stored().get("server") or LOCAL
    if not found.startswith(("http://", "https://")):
        raise ValueError(f"{found}: write the server's address with http:// or https://.")
    return str(found).rstrip("/")


def api_key(url: str, key: str | None = None) -> str | None:
    """The key for a server: told, of DYNABENCH_API_KEY, or of the last login there."""
    return key or os.environ.get("DYNABENCH_API_KEY") or _stored().get("keys", {}).get(url)


def keep_key(url: str, key: str) -> None:
    """Keep the key of a server, which is used from now on where no other is named."""
    _keep({"server": url, "keys": {**_stored().get("keys", {}), url: key}})


def forget_key(url: str) -> bool:
    """Forget the key of a server; whether there was one."""
    keys = _stored().get("keys", {})
    had = keys.pop(url, None) is not None
    if had:
        _keep({"keys": keys})
    return had


def _keep(credentials: Mapping[str, Any]) -> None:
    file = keys_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    # A name of its own, as another process may log in or out meanwhile; 0600 from the beginning.
    handle, name = tempfile.mkstemp(prefix=f"{file.name}.", dir=file.parent)
    try:
        with open(handle, "w") as target:
            json.dump(credentials, target)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink()
        raise
