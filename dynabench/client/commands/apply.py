"""`dynabench apply`: make a task on a site like the folder that describes it."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dynabench.client.benchmarks import lock
from dynabench.client.benchmarks.folder import CONFIG_FILE, Folder, read_folder, read_task_code
from dynabench.client.benchmarks.planning import Options, plan_folder
from dynabench.client.benchmarks.problems import FolderError
from dynabench.client.benchmarks.site import ChangedMeanwhile, NoRight, read_site
from dynabench.client.benchmarks.steps import Kind, PlannedStep, describe_plan
from dynabench.client.client import DynabenchClient
from dynabench.client.commands.shared import (
    FAILED,
    NO_ACCESS,
    STOPPED,
    CommandError,
    add_command,
    open_client,
    print_note,
    print_result,
)
from dynabench.client.errors import DynabenchError

CHANGES = 2
"""The exit code of a dry run that found something to change, as `terraform plan` has it."""


def add_commands(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands, "apply", apply_folder, "create or change a task from a folder of files"
    )
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path(), help="the folder; default: this one"
    )
    mode_group = parser.add_mutually_exclusive_group()
    mode_group.add_argument(
        "--dry-run",
        action="store_true",
        help="only show the plan; exit code 0: nothing to change, 2: something to change, "
        "1: something is wrong",
    )
    mode_group.add_argument("--yes", action="store_true", help="do not ask before changes")
    mode_group.add_argument(
        "--fetch",
        action="store_true",
        help="write the site's configuration to task.yaml, and do nothing else",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace changes that others made to the configuration on the site",
    )
    parser.add_argument(
        "--prune",
        action="store_true",
        help="remove members and open invitations that members.csv does not list",
    )
    parser.add_argument(
        "--invite-again",
        action="store_true",
        help="send a new invitation to people whose invitation ended or was revoked",
    )
    parser.add_argument(
        "--send-secret",
        action="store_true",
        help="send the model's API key again, for example a new one",
    )


def apply_folder(args: argparse.Namespace) -> int:
    """Show the plan for a folder, ask, and make its steps; return the exit code.

    1. Read the files, and stop if one is wrong.
    2. Compare them with the site, and show what would change.
    3. Unless this is a dry run, ask, and make one step after the other.
    """
    if args.json and not (args.dry_run or args.yes or args.fetch):
        raise CommandError("Use --json together with --dry-run, --yes or --fetch.", FAILED)
    client = open_client(args)
    try:
        if args.fetch:
            return _fetch_config(args, client, read_task_code(args.folder))
        folder = read_folder(args.folder)
        options = Options(
            overwrite=args.overwrite,
            prune=args.prune,
            invite_again=args.invite_again,
            send_secret=args.send_secret,
        )
        steps = plan_folder(client, folder, dict(os.environ), options)
    except FolderError as error:
        raise CommandError(
            _describe_problems(error), FAILED, {"problems": _encode(error)}
        ) from None
    except NoRight as error:
        raise CommandError(str(error), NO_ACCESS) from None
    return _carry_out(args, client, folder, steps)


def _describe_problems(error: FolderError) -> str:
    """Return the problems of a folder's files as text."""
    return f"Nothing was changed, because something is wrong in the folder.\n{error}"


def _encode(error: FolderError) -> list[dict[str, Any]]:
    """Return the problems of a folder's files as JSON."""
    return [vars(problem) for problem in error.problems]


def _fetch_config(args: argparse.Namespace, client: DynabenchClient, task: str) -> int:
    """Write the site's configuration to the folder. Raises CommandError."""
    site = read_site(client, task)
    if site is None:
        message = f"There is no task {task} on {client.server}, or you can't see it."
        raise CommandError(message, FAILED)
    path = args.folder / CONFIG_FILE
    path.write_text(site.config["config_text"], encoding="utf-8", newline="\n")
    lock.store_applied_version(args.folder, client.server, task, site.config["version"])
    sentence = f"Wrote the configuration of {task} to {path}. See what changed: git diff"
    print_result(args, {"task": task, "file": str(path)}, sentence)
    return 0


def _carry_out(
    args: argparse.Namespace, client: DynabenchClient, folder: Folder, steps: Sequence[PlannedStep]
) -> int:
    """Show the plan, ask, and make the steps; return the exit code. Raises CommandError."""
    pending_steps = [step for step in steps if step.is_pending]
    impossible_steps = [step for step in steps if step.kind is Kind.IMPOSSIBLE]
    if not args.json:
        print(f"Plan for {folder.task} on {client.server}\n")
        print(describe_plan(steps), flush=True)
    if args.dry_run:
        _print_json(args, client, folder, steps, made_count=0)
        # Something the person asked for does not come true, which a script should notice.
        if impossible_steps:
            return FAILED
        return CHANGES if pending_steps else 0
    # A configuration that somebody else changed decides what all other steps mean.
    if any(step.stops_all for step in steps):
        report = _build_report(client, folder, steps, made_count=0)
        raise CommandError("Nothing was changed. See the lines with ! above.", FAILED, report)
    if pending_steps and not args.yes:
        _ask()
    made_count = _make_steps(args, client, folder, steps)
    _print_json(args, client, folder, steps, made_count)
    if not args.json:
        print(_describe_result(folder, client, made_count, len(impossible_steps)))
    return FAILED if impossible_steps else 0


def _ask() -> None:
    """Ask whether to make the steps. Raises CommandError unless the person says yes."""
    print("\nMake these changes? Type yes: ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer:
        # Such as in a pipeline, where nobody can answer.
        print_note("")
        message = "Nothing was changed. Use --yes to make changes without being asked."
        raise CommandError(message, FAILED)
    if answer.strip().lower() not in ("yes", "y"):
        raise CommandError("Nothing was changed.", FAILED)


def _make_steps(
    args: argparse.Namespace, client: DynabenchClient, folder: Folder, steps: Sequence[PlannedStep]
) -> int:
    """Make the steps in order; return how many changed something. Raises CommandError."""
    made_count = 0
    for step in steps:
        # Unchanged steps may still have something to remember.
        if step.do is None:
            continue
        try:
            if step.check:
                step.check()
            note = step.do()
        except (ChangedMeanwhile, FolderError, DynabenchError) as error:
            reason = str(error).replace("\n", "\n  ")
            raise CommandError(
                f"{step.place}: could not {step.sentence}.\n  {reason}\n"
                f"{_describe_stop(steps, made_count)}",
                FAILED,
                _build_report(client, folder, steps, made_count),
            ) from None
        except KeyboardInterrupt:
            raise CommandError(_describe_stop(steps, made_count), STOPPED) from None
        if step.is_pending:
            made_count += 1
            if not args.json:
                print(f"Done: {step.place}: {step.sentence}", flush=True)
        if note:
            print_note(note)
    return made_count


def _describe_stop(steps: Sequence[PlannedStep], made_count: int) -> str:
    """Return a sentence about a plan that was not made to its end."""
    all_count = sum(step.is_pending for step in steps)
    return (
        f"{made_count} of {all_count} steps were made, and they stay. Run the same command again "
        "to make the others."
    )


def _describe_result(
    folder: Folder, client: DynabenchClient, made_count: int, impossible_count: int
) -> str:
    """Return the last line of the command."""
    if impossible_count:
        return f"\n{made_count} changed, {impossible_count} not possible now (lines with !)."
    if not made_count:
        return "\nNothing to change."
    return f"\n{made_count} changed. Look at it: {client.server}/own/{folder.task}/"


def _build_report(
    client: DynabenchClient, folder: Folder, steps: Sequence[PlannedStep], made_count: int
) -> dict[str, Any]:
    """Return the plan as JSON."""
    return {
        "server": client.server,
        "task": folder.task,
        "steps": [step.encode() for step in steps],
        "made": made_count,
    }


def _print_json(
    args: argparse.Namespace,
    client: DynabenchClient,
    folder: Folder,
    steps: Sequence[PlannedStep],
    made_count: int,
) -> None:
    """Print the plan as JSON, with --json."""
    if args.json:
        print_result(args, _build_report(client, folder, steps, made_count), "")
