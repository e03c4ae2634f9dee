"""Which server is asked, and with which key: told, in the environment, or stored by a login."""

import json
import os
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
    new = file.with_suffix(".new")
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as target:
        json.dump(credentials, target)
    new.replace(file)
