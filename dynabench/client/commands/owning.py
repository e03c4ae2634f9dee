"""`dynabench rounds`, `round`, `contexts` and `duties`: for owners and members of a task."""

import argparse
from pathlib import Path
from typing import Any

from dynabench.client import types
from dynabench.client.commands.shared import (
    FAILED,
    STOPPED,
    USAGE,
    CommandError,
    add_command,
    format_table,
    open_client,
    print_result,
)
from dynabench.client.errors import Invalid


def add_commands(commands: Any) -> None:
    """Add the commands to the parser."""
    parser = add_command(commands, "rounds", print_rounds, "list the rounds of a task")
    parser.add_argument("task", help="the task's code, such as nli")
    parser = add_command(
        commands, "round", change_round, "open, pause, close or release one of your rounds"
    )
    _add_round(parser)
    action_group = parser.add_mutually_exclusive_group(required=True)
    # The option is a verb, the state an adjective.
    for name, state in (("open", "open"), ("pause", "paused"), ("close", "closed")):
        action_group.add_argument(f"--{name}", dest="state", action="store_const", const=state)
    action_group.add_argument(
        "--release", action="store_true", help="release the round and wait for its files"
    )
    action_group.add_argument(
        "--undo-release", action="store_true", help="undo a release that nobody has used yet"
    )
    parser.add_argument("--license", help="license of the released data, such as cc-by-4.0")
    parser = add_command(
        commands, "contexts", import_contexts, "import a file of contexts into a round"
    )
    _add_round(parser)
    parser.add_argument("file", type=Path, metavar="FILE", help="a table, text file or archive")
    parser.add_argument("--dry-run", action="store_true", help="show what would be imported")
    parser.add_argument(
        "--skip-bad", action="store_true", help="skip lines with errors and store the others"
    )
    parser = add_command(
        commands, "duties", print_duties, "list what you are asked to write or judge"
    )
    parser.add_argument("task", nargs="?", help="one of your tasks; lists its members' assignments")


def _add_round(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for a task and a round."""
    parser.add_argument("task", help="the task's code, such as nli")
    parser.add_argument("round", type=int, help="the round's number")


def print_rounds(args: argparse.Namespace) -> int:
    """Print the rounds of a task as a table."""
    round_list = open_client(args).rounds(args.task)
    rows = []
    for round in round_list:
        targets = ", ".join(round["targets"])
        opened_at, closed_at = round["opened_at"], round["closed_at"]
        rows.append([round["number"], round["state"], targets, opened_at, closed_at])
    text = format_table(["round", "state", "targets", "opened", "closed"], rows)
    print_result(args, round_list, text if rows else f"{args.task} has no rounds yet.")
    return 0


def print_duties(args: argparse.Namespace) -> int:
    """Print your own assignments, or those of a task's members if a task is given, as a table."""
    client = open_client(args)
    duty_list: Any
    if args.task:
        duty_list = client.task_duties(args.task)
        first_head, first_cells = "person", [duty["email"] or "everybody" for duty in duty_list]
    else:
        duty_list = client.duties()
        first_head, first_cells = "task", [duty["task"] for duty in duty_list]
    rows = [
        [
            first_cell,
            duty["kind"],
            duty["round"] or "all",
            duty["amount"] or f"{duty['share']:.0%}",
            duty["done"],
            duty["due_on"],
            duty["state"],
        ]
        for first_cell, duty in zip(first_cells, duty_list, strict=True)
    ]
    heads = [first_head, "what", "round", "asked", "done", "until", "state"]
    print_result(args, duty_list, format_table(heads, rows) if rows else "No assignments.")
    return 0


def change_round(args: argparse.Namespace) -> int:
    """Set a round's state, release the round and wait, or undo its release."""
    client = open_client(args)
    if args.state:
        round = client.set_round_state(args.task, args.round, args.state)
        sentence = f"Round {round['number']} of {args.task} is {round['state']}"
        # Targets may take minutes to load; the server opens the round by itself then.
        note = ". It opens as soon as its targets are ready" if round.get("opening_since") else ""
        print_result(args, round, f"{sentence}{note}.")
        return 0
    if args.undo_release:
        client.undo_release(args.task, args.round)
        data = {"task": args.task, "round": args.round, "state": "closed"}
        print_result(args, data, f"The release of round {args.round} of {args.task} was undone.")
        return 0
    if not args.license:
        raise CommandError("Use --license to name the license, such as cc-by-4.0.", USAGE)
    try:
        release = client.release(args.task, args.round, license=args.license)
    # The release goes on at the server: only the waiting was interrupted.
    except KeyboardInterrupt:
        retry_command = (
            "Stopped waiting. The release continues on the server. Look for it: dynabench data "
            f"{args.task}"
        )
        raise CommandError(retry_command, STOPPED) from None
    command = f"dynabench data {args.task} {args.round}"
    print_result(args, release, f"Version {release['version']} is released. Download it: {command}")
    return 0


def import_contexts(args: argparse.Namespace) -> int:
    """Import a file of contexts, or print what the import would do.

    Returns 1 if a dry run finds bad lines. Raises CommandError if bad lines prevent the import.
    """
    try:
        import_result = open_client(args).import_contexts(
            args.task, args.round, args.file, dry_run=args.dry_run, skip_bad=args.skip_bad
        )
    except Invalid as error:  # nothing is stored
        if args.skip_bad:
            raise
        # A message for each bad line, which the error's own text would repeat.
        problems = "\n".join(error.fields.get("text") or [str(error)])
        hint = "Nothing was stored. Fix these lines, or use --skip-bad to skip them."
        raise CommandError(f"{args.file}:\n{problems}\n{hint}") from error
    print_result(args, import_result, _describe_import(import_result, is_dry=args.dry_run))
    # With --skip-bad people have accepted that bad lines are left out.
    return FAILED if import_result["error_count"] and not args.skip_bad else 0


def _describe_import(import_result: types.ImportedContexts, *, is_dry: bool) -> str:
    """Return the number of new, existing and bad contexts, and the first bad lines."""
    stored_text = f"New: {import_result['new']}" if is_dry else f"Stored: {import_result['stored']}"
    duplicates, bad_count = import_result["duplicate_count"], import_result["error_count"]
    lines = [f"{stored_text}. Already stored: {duplicates}. Lines with errors: {bad_count}."]
    lines += [f"line {error['line']}: {error['message']}" for error in import_result["errors"]]
    hidden_count = bad_count - len(import_result["errors"])
    if hidden_count:
        lines.append(f"… and {hidden_count} more")
    return "\n".join(lines)
