"""`dynabench login`, `logout` and `whoami`: the account that commands use."""

import argparse
import os
import sys
from datetime import UTC, datetime
from getpass import getpass
from typing import Any

from dynabench.client import types
from dynabench.client.commands.shared import (
    USAGE,
    CommandError,
    add_command,
    find_server,
    open_client,
    print_note,
    print_result,
)
from dynabench.client.credentials import delete_key, find_keys_file, store_key


def add_commands(commands: Any) -> None:
    """Add the commands to the parser."""
    parser = add_command(commands, "login", store_login, "sign in to a server with an API token")
    parser.add_argument(
        "--key", help="the API token; by default we ask for it or read standard input"
    )
    add_command(commands, "logout", delete_login, "delete the stored token of a server")
    add_command(commands, "whoami", print_account, "show your account and token")


def store_login(args: argparse.Namespace) -> int:
    """Store an API token after the server has accepted it; print the account."""
    server = find_server(args)
    key = (args.key or _read_key(server)).strip()
    if not key:
        raise CommandError(f"Enter an API token. Create one at {server}/account/tokens/.", USAGE)
    # A key that the server refuses is not stored.
    account = open_client(args, key).me()
    store_key(server, key)
    # Otherwise people would wonder why the login has no effect.
    if os.environ.get("DYNABENCH_API_KEY", key) != key:
        print_note(
            "DYNABENCH_API_KEY contains a different token, which takes precedence. Unset it."
        )
    text = f"{_describe_account(server, account)}\nToken stored in {find_keys_file()}."
    print_result(args, {"server": server, **account}, text)
    return 0


def _read_key(server: str) -> str:
    """Return the API token that the user types, or the first line of standard input."""
    # From a pipe, such as a password manager's.
    if not sys.stdin.isatty():
        return sys.stdin.readline()
    return getpass(f"API token for {server} (hidden; create one at {server}/account/tokens/): ")


def delete_login(args: argparse.Namespace) -> int:
    """Delete the API token stored for a server.

    The token remains valid until it expires or is revoked.
    """
    server = find_server(args)
    was_stored = delete_key(server)
    if was_stored:
        text = (
            f"Deleted the token for {server} from this machine. To end the token itself, "
            "revoke it on your account page."
        )
    else:
        text = f"No token for {server} is stored on this machine."
    print_result(args, {"server": server, "deleted": was_stored}, text)
    return 0


def print_account(args: argparse.Namespace) -> int:
    """Print the account that the API token belongs to."""
    account, server = open_client(args).me(), find_server(args)
    print_result(args, {"server": server, **account}, _describe_account(server, account))
    return 0


def _describe_account(server: str, account: types.Me) -> str:
    """Return a text about the account, the token's scopes and its expiry date."""
    token = account["token"]
    assert token  # a key was sent
    expires_at = datetime.fromisoformat(token["expires_at"])
    days = (expires_at - datetime.now(UTC)).days
    return (
        f"Signed in at {server} as {account['pseudonym']}. Token “{token['name']}”: "
        f"{', '.join(token['scopes'])}, expires on {expires_at:%Y-%m-%d}, in {days} days."
    )
