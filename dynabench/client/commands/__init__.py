"""The command `dynabench`: make, check and submit models, follow them, get data; run rounds."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from dynabench.client.commands import (
    account,
    apply,
    communities,
    data,
    init,
    mcp,
    models,
    owning,
    results,
    test,
    verify,
    worker,
)
from dynabench.client.commands.names import find_unknown_name
from dynabench.client.commands.shared import (
    FAILED,
    NO_ACCESS,
    STOPPED,
    USAGE,
    CommandError,
    print_note,
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

COMMAND_MODULES = (
    account,
    init,
    test,
    models,
    results,
    communities,
    data,
    verify,
    owning,
    apply,
    worker,
    mcp,
)
"""The modules with commands, in the order in which the help lists them."""
LOGIN_HINT = "Run: dynabench login"
UNKNOWN_HINT = "Check the name. You also get this message for things you may not see."
NO_REASON_MESSAGE = "The model failed for an unknown reason. Please report this."
FIRST_STEPS_HINT = (
    "Try: dynabench login, dynabench init nli, dynabench test nli-model/model --task nli."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    0: done, 1: refused or failed, 2: wrong usage, 3: no access, 130: stopped with Ctrl-C.
    """
    args = make_parser().parse_args(arguments)
    try:
        code: int = args.do(args)
        # Here and not at the end of the interpreter, where an error could not be caught.
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough. Without this the interpreter would complain
        # when it flushes standard output at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _print_failure(args, "Stopped. Run the same command again to resume.", STOPPED)
    except (CommandError, DynabenchError, OSError, ValueError) as error:
        message, code = _describe_error(args, error)
        return _print_failure(args, message, code, error)


def _describe_error(args: argparse.Namespace, error: Exception) -> tuple[str, int]:
    """Return (message that explains the error and its remedy, exit code)."""
    match error:
        case CommandError():
            return str(error), error.code
        case AuthenticationError():
            return f"{error} {LOGIN_HINT}", NO_ACCESS
        case PermissionDenied():
            # Another token may have the scope that this one lacks.
            message = f"{error} {LOGIN_HINT}" if error.code == "scope" else str(error)
            return message, NO_ACCESS
        # Other codes say in their message what is missing.
        case NotFound(code="not_found"):
            return f"{error} {find_unknown_name(args) or UNKNOWN_HINT}", FAILED
        case Unreachable():
            return f"{error} Or use --server.", NO_ACCESS
        case ServerError():
            return f"{error} Check the server's URL in --server or DYNABENCH_URL.", NO_ACCESS
        case FileNotFoundError():
            return str(error), USAGE
    return str(error), FAILED


def make_parser() -> argparse.ArgumentParser:
    """Return the parser for all commands and their arguments."""
    parser = argparse.ArgumentParser(prog="dynabench", description=__doc__, epilog=FIRST_STEPS_HINT)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module in COMMAND_MODULES:
        module.add_commands(commands)
    return parser


def _encode_error(message: str, error: Exception | None) -> dict[str, Any]:
    """Return an error in the API's format, with a check's report or a model's log if any."""
    problem: dict[str, Any] = {"code": "", "message": message, "fields": {}}
    report: dict[str, Any] = {}
    if isinstance(error, DynabenchError):
        problem |= {"code": error.code, "fields": error.fields}
    if isinstance(error, EvaluationFailed):
        problem |= {"limit": error.limit, "measured": error.measured, "log": error.log}
    if isinstance(error, CommandError):
        report = error.data or {}
    return report | {"error": problem}


def _print_failure(
    args: argparse.Namespace, message: str, code: int, error: Exception | None = None
) -> int:
    """Print an error on standard error, and with --json also on standard output.

    Return the exit code `code`.
    """
    text = message.strip() or NO_REASON_MESSAGE
    if args.json:
        print(json.dumps(_encode_error(text, error), ensure_ascii=False, indent=1))
    print_note(f"Error: {text}")
    return code
