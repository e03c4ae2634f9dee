"""`dynabench data`: downloads of released rounds, and of inputs for predictions."""

import argparse
from pathlib import Path
from typing import Any

from dynabench.client.commands.shared import add_command, format_table, open_client, print_result


def add_commands(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands, "data", download_data, "download a released round, or list released rounds"
    )
    parser.add_argument("task", help="the task's code, such as nli")
    parser.add_argument("round", nargs="?", type=int, help="the round's number")
    parser.add_argument("--version", type=int, help="version of the release; default: the newest")
    parser.add_argument(
        "--inputs", metavar="SET", help="download the inputs of this evaluation set instead"
    )
    parser.add_argument(
        "--to", default=".", type=Path, help="folder to write to; default: the current folder"
    )


def download_data(args: argparse.Namespace) -> int:
    """Download a round or the inputs of a set, or list what can be downloaded.

    An interrupted download resumes.
    """
    client = open_client(args)
    # Before a download that may take long, so that a wrong folder fails at once.
    args.to.mkdir(parents=True, exist_ok=True)
    if args.inputs:
        path = client.download_inputs(args.task, args.inputs, args.to)
    elif args.round is not None:
        path = client.download_data(args.task, args.round, args.version, args.to)
    else:
        return _print_downloads(args, client.datasets(args.task), client.evaluation_sets(args.task))
    print_result(args, {"path": str(path)}, f"Saved to {path}.")
    return 0


def _print_downloads(args: argparse.Namespace, releases: list[Any], sets: list[Any]) -> int:
    """Print the released rounds and the evaluation sets of a task."""
    rows = []
    for release in releases:
        file_names = ", ".join(file["name"] for file in release["files"])
        rows.append([release["round"], release["version"], file_names])
    text = format_table(["round", "version", "files"], rows) if rows else "No released rounds yet."
    names = ", ".join(each["name"] for each in sets)
    if names:
        text += f"\nEvaluation sets: {names}"
        text += f"\nDownload their inputs: dynabench data {args.task} --inputs SET"
    print_result(args, {"datasets": releases, "evaluation_sets": sets}, text)
    return 0
