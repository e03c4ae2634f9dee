"""The command `dynabench`: make, check and submit models, follow them, get data; run rounds."""

import argparse
import os
import sys
from collections.abc import Sequence

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
    try:
        args = make_parser().parse_args(arguments)
        code: int = args.do(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # who reads us has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _fail("Stopped. The same command goes on where it was.", STOPPED)
    except CommandError as error:
        return _fail(str(error), error.code)
    except AuthenticationError as error:
        return _fail(f"{error} {LOGIN}", NO_ACCESS)
    except PermissionDenied as error:
        return _fail(f"{error} {LOGIN}" if error.code == "scope" else str(error), NO_ACCESS)
    except NotFound as error:
        return _fail(f"{error} {UNKNOWN}" if error.code == "not_found" else str(error), FAILED)
    except Unreachable as error:
        return _fail(f"{error} In a command: --server.", NO_ACCESS)
    except ServerError as error:
        return _fail(f"{error} The server is named by --server or DYNABENCH_URL.", NO_ACCESS)
    except (DynabenchError, OSError, ValueError) as error:
        return _fail(str(error), USAGE if isinstance(error, FileNotFoundError) else FAILED)


def make_parser() -> argparse.ArgumentParser:
    """All commands and their arguments."""
    parser = argparse.ArgumentParser(prog="dynabench", description=__doc__, epilog=FIRST)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for module in (account, init, test, models, results, communities, data, owning, worker):
        module.add(commands)
    return parser


def _fail(message: str, code: int) -> int:
    note(f"Error: {message.strip() or NOTHING}")
    return code
