"""The command `dynabench`: make, check and submit models, follow them, get data; run rounds."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from dynabench.client.commands import (
    account,
    communities,
    data,
    init,
    models,
    owning,
    results,
    test,
    worker,
)
from dynabench.client.commands.names import unknown_name
from dynabench.client.commands.shared import (
    FAILED,
    NO_ACCESS,
    STOPPED,
    USAGE,
    CommandError,
    note,
)
from dynabench.client.errors import (
    AuthenticationError,
    DynabenchError,
    EvaluationFailed,
    NotFound,
    PermissionDenied,
    ServerError,
    Unreachable,
)

LOGIN = "Then: dynabench login"
UNKNOWN = "Check the name: what is not for you is not found either."
NOTHING = "It failed and nothing says why. Please report it."
FIRST = "Try: dynabench login, dynabench init nli, dynabench test nli-model/model --task nli."


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say; 0: done, 1: refused or failed, 2: usage, 3: no access."""
    args = make_parser().parse_args(arguments)
    try:
        code: int = args.do(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # who reads us has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _fail(args, "Stopped. The same command goes on where it was.", STOPPED)
    except (CommandError, DynabenchError, OSError, ValueError) as error:
        return _fail(args, *_told(args, error), error)


def _told(args: argparse.Namespace, error: Exception) -> tuple[str, int]:
    """What is said of an error, with its cure, and the exit code."""
    match error:
        case CommandError():
            return str(error), error.code
        case AuthenticationError():
            return f"{error} {LOGIN}", NO_ACCESS
        case PermissionDenied():
            return (f"{error} {LOGIN}" if error.code == "scope" else str(error)), NO_ACCESS
        case NotFound(code="not_found"):
            return f"{error} {unknown_name(args) or UNKNOWN}", FAILED
        case Unreachable():
            return f"{error} In a command: --server.", NO_ACCESS
        case ServerError():
            return f"{error} The server is named by --server or DYNABENCH_URL.", NO_ACCESS
        case FileNotFoundError():
            return str(error), USAGE
    return str(error), FAILED


def make_parser() -> argparse.ArgumentParser:
    """All commands and their arguments."""
    parser = argparse.ArgumentParser(prog="dynabench", description=__doc__, epilog=FIRST)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module in (account, init, test, models, results, communities, data, owning, worker):
        module.add(commands)
    return parser


def _as_data(said: str, error: Exception | None) -> dict[str, Any]:
    """A failure as the API writes errors; of a check with its report, of a model with its log."""
    found: dict[str, Any] = {"code": "", "message": said, "fields": {}}
    more: dict[str, Any] = {}
    if isinstance(error, DynabenchError):
        found |= {"code": error.code, "fields": error.fields}
    if isinstance(error, EvaluationFailed):
        found |= {"limit": error.limit, "measured": error.measured, "log": error.log}
    if isinstance(error, CommandError):
        more = error.data or {}
    return {**more, "error": found}


def _fail(args: argparse.Namespace, message: str, code: int, error: Exception | None = None) -> int:
    """Say what went wrong on standard error; where JSON is asked for, on standard output too."""
    said = message.strip() or NOTHING
    if args.json:
        print(json.dumps(_as_data(said, error), ensure_ascii=False, indent=1))
    note(f"Error: {said}")
    return code
