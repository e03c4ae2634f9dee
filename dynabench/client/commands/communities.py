"""`dynabench communities`, and `dynabench submit --community`: tasks that are kept together."""

import argparse
from typing import Any

from dynabench.client import types
from dynabench.client.commands.shared import (
    USAGE,
    CommandError,
    client_for,
    command,
    note,
    table,
    tell,
)

KINDS = {
    "predictions": "predictions",
    "rows": "rows",
    "llm": "llm",
    "hub": "hub",
    "folder": "directory",
}


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = command(
        commands, "communities", communities, "communities, or the board across one's tasks"
    )
    parser.add_argument("community", nargs="?", metavar="COMMUNITY", help="its address")
    parser.add_argument("--track", help="only the models of this track")


def communities(args: argparse.Namespace) -> int:
    """The list of them, or the board of one."""
    client = client_for(args)
    if not args.community:
        found = client.communities()
        rows = [[one["slug"], one["name"], one["summary"]] for one in found]
        tell(args, found, table(["address", "name", "about"], rows) if rows else "There is none.")
        return 0
    board = client.community_board(args.community, track=args.track)
    tell(args, board, _board(board))
    return 0


def _board(board: types.CommunityBoard) -> str:
    tasks = [column["task"] for column in board["columns"]]
    rows = []
    for line in board["lines"]:
        points = {one["task"]: one["value"] for one in line["points"]}
        cells = [_number(points.get(task)) for task in tasks]
        name = line["name"] or "(hidden)"
        rows.append([line["rank"] or "-", name, _number(line["score"]), *cells])
    return table(["rank", "model", "score", *tasks], rows) if rows else "No model has a score yet."


def _number(value: float | None) -> str:
    return "not run" if value is None else f"{value:.1f}"


def submit(args: argparse.Namespace) -> int:
    """Hand one model in to all tasks; they are followed one by one."""
    kind = next((name for name in KINDS if getattr(args, name)), None)
    if kind is None:
        raise CommandError(
            "A community takes a folder, --predictions, --rows, --llm or --hub.", USAGE
        )
    if args.publish or args.team or args.estimate:
        raise CommandError("--publish, --team and --estimate are for --task.", USAGE)
    client, about = client_for(args), args.description or ""
    made = client.submit_to_community(
        args.community,
        KINDS[kind],  # type: ignore[arg-type]
        getattr(args, kind),
        args.name,
        args.track or "",
        about,
    )
    note(f"Submitted: {client.server}/communities/{args.community}/submissions/{made['id']}/")
    rows = [[one["task"], one["id"], one["state"]] for one in made["models"]]
    tell(args, made, table(["task", "model", "state"], rows))
    return 0
