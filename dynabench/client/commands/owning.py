"""`dynabench rounds`, `round`, `contexts` and `duties`: for whoever owns a task or works in one."""

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


def add(commands: Any) -> None:
    """Add the commands to the parser."""
    parser = add_command(commands, "rounds", rounds, "the rounds of a task")
    parser.add_argument("task", help="the task's code, such as nli")
    parser = add_command(
        commands, "round", change, "open, pause, close or release a round of yours"
    )
    _add_round(parser)
    action_group = parser.add_mutually_exclusive_group(required=True)
    # The option is a verb, the state an adjective.
    for name, state in (("open", "open"), ("pause", "paused"), ("close", "closed")):
        action_group.add_argument(f"--{name}", dest="state", action="store_const", const=state)
    action_group.add_argument(
        "--release", action="store_true", help="and wait until its files are there"
    )
    action_group.add_argument(
        "--undo-release", action="store_true", help="where nobody has used what was released"
    )
    parser.add_argument("--license", help="of what is released, such as cc-by-4.0")
    parser = add_command(commands, "contexts", contexts, "bring a file of contexts into a round")
    _add_round(parser)
    parser.add_argument("file", type=Path, metavar="FILE", help="a table, text or archive")
    parser.add_argument("--dry-run", action="store_true", help="only tell what it would bring")
    parser.add_argument(
        "--skip-bad", action="store_true", help="store the good lines where others are bad"
    )
    parser = add_command(commands, "duties", duties, "what you are asked to write or judge")
    parser.add_argument("task", nargs="?", help="of yours: what its members are asked for")


def _add_round(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for a task and a round."""
    parser.add_argument("task", help="the task's code, such as nli")
    parser.add_argument("round", type=int, help="its number")


def rounds(args: argparse.Namespace) -> int:
    """Print the rounds of a task as a table."""
    round_list = open_client(args).rounds(args.task)
    rows = []
    for round in round_list:
        targets = ", ".join(round["targets"])
        opened, closed = round["opened_at"], round["closed_at"]
        rows.append([round["number"], round["state"], targets, opened, closed])
    text = format_table(["round", "state", "targets", "opened", "closed"], rows)
    print_result(args, round_list, text if rows else f"{args.task} has no round yet.")
    return 0


def duties(args: argparse.Namespace) -> int:
    """Print your own assignments, or those of a task's members, as a table."""
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
    print_result(args, duty_list, format_table(heads, rows) if rows else "Nothing is asked for.")
    return 0


def change(args: argparse.Namespace) -> int:
    """Set a round's state, release the round and wait, or undo its release."""
    client = open_client(args)
    if args.state:
        round = client.set_round_state(args.task, args.round, args.state)
        words = f"Round {round['number']} of {args.task} is {round['state']}"
        # Targets may take minutes to load; the server opens the round by itself then.
        waits = ", and opens when its targets are ready" if round.get("opening_since") else ""
        print_result(args, round, f"{words}{waits}.")
        return 0
    if args.undo_release:
        client.undo_release(args.task, args.round)
        data = {"task": args.task, "round": args.round, "state": "closed"}
        print_result(args, data, f"The release of round {args.round} of {args.task} was undone.")
        return 0
    if not args.license:
        raise CommandError("Name the licence with --license, such as cc-by-4.0.", USAGE)
    try:
        release = client.release(args.task, args.round, license=args.license)
    # The release goes on at the server: only the waiting was interrupted.
    except KeyboardInterrupt:
        again = f"Stopped waiting. It goes on there; look for it: dynabench data {args.task}"
        raise CommandError(again, STOPPED) from None
    where = f"dynabench data {args.task} {args.round}"
    print_result(args, release, f"Version {release['version']} is released. Download it: {where}")
    return 0


def contexts(args: argparse.Namespace) -> int:
    """Import a file of contexts, or print what the import would do.

    Returns 1 if the file has bad lines and was not stored.
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
        hint = "Nothing was stored. Where lines are bad, --skip-bad stores the good lines."
        raise CommandError(f"{args.file}:\n{problems}\n{hint}") from error
    print_result(args, import_result, _describe_import(import_result, is_dry=args.dry_run))
    # With --skip-bad people have accepted that bad lines are left out.
    return FAILED if import_result["error_count"] and not args.skip_bad else 0


def _describe_import(import_result: types.ImportedContexts, *, is_dry: bool) -> str:
    """Return the number of new, existing and bad contexts, and the first bad lines."""
    new = f"New: {import_result['new']}" if is_dry else f"Stored: {import_result['stored']}"
    duplicates, bad_count = import_result["duplicate_count"], import_result["error_count"]
    lines = [f"{new}. There already: {duplicates}. Bad lines: {bad_count}."]
    lines += [f"line {error['line']}: {error['message']}" for error in import_result["errors"]]
    more = bad_count - len(import_result["errors"])
    if more:
        lines.append(f"… and {more} more")
    return "\n".join(lines)
