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
    client_for,
    command,
    table,
    tell,
)
from dynabench.client.errors import Invalid


def add(commands: Any) -> None:
    """Add the commands to the parser."""
    parser = command(commands, "rounds", rounds, "the rounds of a task")
    parser.add_argument("task", help="the task's code, such as nli")
    parser = command(commands, "round", change, "open, pause, close or release a round of yours")
    _add_round(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    for name, state in (("open", "open"), ("pause", "paused"), ("close", "closed")):
        what.add_argument(f"--{name}", dest="state", action="store_const", const=state)
    what.add_argument("--release", action="store_true", help="and wait until its files are there")
    what.add_argument(
        "--undo-release", action="store_true", help="where nobody has used what was released"
    )
    parser.add_argument("--license", help="of what is released, such as cc-by-4.0")
    parser = command(commands, "contexts", contexts, "bring a file of contexts into a round")
    _add_round(parser)
    parser.add_argument("file", type=Path, metavar="FILE", help="a table, text or archive")
    parser.add_argument("--dry-run", action="store_true", help="only tell what it would bring")
    parser.add_argument(
        "--skip-bad", action="store_true", help="store the good lines where others are bad"
    )
    parser = command(commands, "duties", duties, "what you are asked to write or judge")
    parser.add_argument("task", nargs="?", help="of yours: what its members are asked for")


def _add_round(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", help="the task's code, such as nli")
    parser.add_argument("round", type=int, help="its number")


def rounds(args: argparse.Namespace) -> int:
    """A table of them."""
    found = client_for(args).rounds(args.task)
    rows = [
        [one["number"], one["state"], ", ".join(one["targets"]), one["opened_at"], one["closed_at"]]
        for one in found
    ]
    text = table(["round", "state", "targets", "opened", "closed"], rows)
    tell(args, found, text if rows else f"{args.task} has no round yet.")
    return 0


def duties(args: argparse.Namespace) -> int:
    """A table of one's own, or of those of a task."""
    client = client_for(args)
    found: Any = client.task_duties(args.task) if args.task else client.duties()
    rows = [
        [
            (one["email"] or "everybody") if args.task else one["task"],
            one["kind"],
            one["round"] or "all",
            one["amount"] or f"{one['share']:.0%}",
            one["done"],
            one["due_on"],
            one["state"],
        ]
        for one in found
    ]
    head = ["person" if args.task else "task", "what", "round", "asked", "done", "until", "state"]
    tell(args, found, table(head, rows) if rows else "Nothing is asked for.")
    return 0


def change(args: argparse.Namespace) -> int:
    """Set its state; or release it, and wait; or undo its release."""
    client = client_for(args)
    if args.state:
        now = client.set_round_state(args.task, args.round, args.state)
        words = f"Round {now['number']} of {args.task} is {now['state']}"
        waits = ", and opens when its targets are ready" if now.get("opening_since") else ""
        tell(args, now, f"{words}{waits}.")
        return 0
    if args.undo_release:
        client.undo_release(args.task, args.round)
        done = {"task": args.task, "round": args.round, "state": "closed"}
        tell(args, done, f"The release of round {args.round} of {args.task} was undone.")
        return 0
    if not args.license:
        raise CommandError("Name the licence with --license, such as cc-by-4.0.", USAGE)
    try:
        made = client.release(args.task, args.round, license=args.license)
    except KeyboardInterrupt:
        again = f"Stopped waiting. It goes on there; look for it: dynabench data {args.task}"
        raise CommandError(again, STOPPED) from None
    where = f"dynabench data {args.task} {args.round}"
    tell(args, made, f"Version {made['version']} is released. Download it: {where}")
    return 0


def contexts(args: argparse.Namespace) -> int:
    """Import a file, or tell what it would bring; 1: it has bad lines and was not stored."""
    try:
        found = client_for(args).import_contexts(
            args.task, args.round, args.file, dry_run=args.dry_run, skip_bad=args.skip_bad
        )
    except Invalid as error:  # nothing is stored
        if args.skip_bad:
            raise
        said = [*error.fields.get("text", ()), *([] if "text" in error.fields else [str(error)])]
        hint = "Nothing was stored. Where lines are bad, --skip-bad stores the good lines."
        raise CommandError("\n".join([f"{args.file}:", *said, hint])) from error
    tell(args, found, _brought(found, is_dry=args.dry_run))
    return FAILED if found["error_count"] and not args.skip_bad else 0


def _brought(found: types.ImportedContexts, *, is_dry: bool) -> str:
    new = f"New: {found['new']}" if is_dry else f"Stored: {found['stored']}"
    lines = [
        f"{new}. There already: {found['duplicate_count']}. Bad lines: {found['error_count']}.",
        *(f"line {error['line']}: {error['message']}" for error in found["errors"]),
    ]
    more = found["error_count"] - len(found["errors"])
    return "\n".join([*lines, *([f"… and {more} more"] if more else [])])
