"""Errors, exit codes, arguments and output that the commands share."""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import UUID

from dynabench.client.client import DynabenchClient
from dynabench.client.credentials import find_server_url

FAILED, USAGE, NO_ACCESS, STOPPED = 1, 2, 3, 130
"""Exit codes: refused or failed; wrong usage; no access; stopped with Ctrl-C."""
RETRIES = 3
"""The number of retries: fewer than the client's default, because a person waits.

The same command resumes what was interrupted.
"""


class CommandError(Exception):
    """Raised when a command fails. The message says why, and what to do.

    code: the exit code. data: a report of the failure, for --json.
    """

    def __init__(self, message: str, code: int = FAILED, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.data = code, data


def add_command(
    commands: Any, name: str, do: Callable[[argparse.Namespace], int], help: str
) -> argparse.ArgumentParser:
    """Add a command with the arguments common to all commands, and return its parser."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=help, description=help)
    parser.add_argument(
        "--server",
        metavar="URL",
        help=(
            "server URL; default: DYNABENCH_URL, the server of the last login, or "
            "http://127.0.0.1:8000"
        ),
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    # `main` calls what it finds there.
    parser.set_defaults(do=do)
    return parser


def parse_model_id(text: str) -> UUID:
    """Parse a model's id from the command line. Raises ArgumentTypeError."""
    try:
        return UUID(text)
    except ValueError:
        message = f"{text!r} is not a model ID. `dynabench status` lists your models"
        raise argparse.ArgumentTypeError(message) from None


def find_server(args: argparse.Namespace) -> str:
    """Return the server's URL. Raises CommandError."""
    try:
        return find_server_url(args.server)
    except ValueError as error:
        raise CommandError(str(error), USAGE) from None


def open_client(
    args: argparse.Namespace, key: str | None = None, retries: int = RETRIES
) -> DynabenchClient:
    """Return a client for the server with this key, by default the stored one."""
    return DynabenchClient(key, find_server(args), retries=retries)


def print_result(args: argparse.Namespace, data: Any, text: str) -> None:
    """Print a result on standard output: the data as JSON with --json, otherwise the text."""
    if args.json:
        # The server's own data and nothing else, so that programs can read it.
        print(json.dumps(data, ensure_ascii=False, indent=1))
    elif text:
        print(text)


def print_note(text: str) -> None:
    """Print a note on standard error, so that it does not mix with the result."""
    print(text, file=sys.stderr, flush=True)


def format_table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table with aligned columns. An unknown value is shown as a dash."""
    lines = [list(heads)]
    for row in rows:
        lines.append(["-" if value in (None, "") else str(value) for value in row])
    # All lines have as many cells as the heads.
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
