"""`dynabench login`, `logout` and `whoami`: which account a shell works for."""

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
from dynabench.client.credentials import find_keys_file, forget_key, keep_key


def add(commands: Any) -> None:
    """Add the commands to the parser."""
    parser = add_command(commands, "login", login, "keep a key for a server")
    parser.add_argument("--key", help="the key; else it is asked for, or read from standard input")
    add_command(commands, "logout", logout, "delete the key that is kept for a server")
    add_command(commands, "whoami", whoami, "say for whom and with which token this works")


def login(args: argparse.Namespace) -> int:
    """Store a key after the server has accepted it."""
    server = find_server(args)
    key = (args.key or _read_key(server)).strip()
    if not key:
        raise CommandError(f"No key was given. Make one at {server}/account/tokens/.", USAGE)
    # A key that the server refuses is not stored.
    me = open_client(args, key).me()
    keep_key(server, key)
    # Otherwise people would wonder why the login has no effect.
    if os.environ.get("DYNABENCH_API_KEY", key) != key:
        print_note("The key in DYNABENCH_API_KEY is another one and goes first. Unset it.")
    text = f"{_describe_account(server, me)}\nThe key is in {find_keys_file()}."
    print_result(args, {"server": server, **me}, text)
    return 0


def _read_key(server: str) -> str:
    """Return the key that the user types, or the first line of standard input."""
    # From a pipe, such as a password manager's.
    if not sys.stdin.isatty():
        return sys.stdin.readline()
    return getpass(f"Key for {server} (it is not shown; make one at {server}/account/tokens/): ")


def logout(args: argparse.Namespace) -> int:
    """Delete the stored key of a server.

    The token itself stays valid until it expires or is revoked.
    """
    server = find_server(args)
    was_there = forget_key(server)
    if was_there:
        text = (
            f"The key for {server} is deleted here. To end the token, revoke it on your account "
            "page."
        )
    else:
        text = f"No key for {server} is here."
    print_result(args, {"server": server, "deleted": was_there}, text)
    return 0


def whoami(args: argparse.Namespace) -> int:
    """Print which account the key belongs to."""
    me, server = open_client(args).me(), find_server(args)
    print_result(args, {"server": server, **me}, _describe_account(server, me))
    return 0


def _describe_account(server: str, me: types.Me) -> str:
    """Return a text with the account, the token's permissions and its expiry date."""
    token = me["token"]
    assert token  # a key was sent
    expires_at = datetime.fromisoformat(token["expires_at"])
    days = (expires_at - datetime.now(UTC)).days
    return (
        f"You are {me['pseudonym']} at {server}. The token “{token['name']}” may "
        f"{', '.join(token['scopes'])} and ends on {expires_at:%Y-%m-%d}, in {days} days."
    )
