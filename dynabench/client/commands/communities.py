"""`dynabench communities` and `dynabench submit --community`: submissions to all tasks."""

import argparse
from typing import Any

from dynabench.client import types
from dynabench.client.commands.shared import (
    USAGE,
    CommandError,
    add_command,
    format_table,
    open_client,
    print_note,
    print_result,
)

KINDS = {
    "predictions": "predictions",
    "rows": "rows",
    "llm": "llm",
    "hub": "hub",
    "folder": "directory",
}
"""The API's kind of submission, by command-line option."""


def add_commands(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands,
        "communities",
        print_communities,
        "list communities, or show the leaderboard of one",
    )
    parser.add_argument(
        "community",
        nargs="?",
        metavar="COMMUNITY",
        help="the community's URL name, such as babylm",
    )
    parser.add_argument("--track", help="show only models of this track")


def print_communities(args: argparse.Namespace) -> int:
    """Print the list of communities, or the leaderboard of one."""
    client = open_client(args)
    if not args.community:
        community_list = client.communities()
        rows = [[each["slug"], each["name"], each["summary"]] for each in community_list]
        print_result(
            args,
            community_list,
            format_table(["address", "name", "about"], rows) if rows else "No communities yet.",
        )
        return 0
    board = client.community_board(args.community, track=args.track)
    print_result(args, board, _format_board(board))
    return 0


def _format_board(board: types.CommunityBoard) -> str:
    """Return the leaderboard of a community as a table."""
    tasks = [column["task"] for column in board["columns"]]
    rows = []
    for line in board["lines"]:
        # A model has points only for tasks that it was run on.
        points = {point["task"]: point["value"] for point in line["points"]}
        cells = [_format_number(points.get(task)) for task in tasks]
        name = line["name"] or "(hidden)"
        rows.append([line["rank"] or "-", name, _format_number(line["score"]), *cells])
    return (
        format_table(["rank", "model", "score", *tasks], rows)
        if rows
        else "No model has a score yet."
    )


def _format_number(value: float | None) -> str:
    """Return a score with one decimal, or "not run" for None."""
    return "not run" if value is None else f"{value:.1f}"


def submit_to_community(args: argparse.Namespace) -> int:
    """Submit one model to all tasks of a community, and print each task's model."""
    option = next((name for name in KINDS if getattr(args, name)), None)
    if option is None:
        raise CommandError(
            "To submit to a community, use a folder, --predictions, --rows, --llm or --hub.", USAGE
        )
    if args.publish or args.team or args.estimate:
        raise CommandError("--publish, --team and --estimate work only with --task.", USAGE)
    client = open_client(args)
    submission = client.submit_to_community(
        args.community,
        KINDS[option],  # type: ignore[arg-type]
        getattr(args, option),
        args.name,
        args.track or "",
        args.description or "",
    )
    print_note(
        f"Submitted: {client.server}/communities/{args.community}/submissions/{submission['id']}/"
    )
    rows = [[model["task"], model["id"], model["state"]] for model in submission["models"]]
    print_result(args, submission, format_table(["task", "model", "state"], rows))
    return 0
