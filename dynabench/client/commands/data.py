"""`dynabench data`: released rounds, and the inputs of sets that predictions are made for."""

import argparse
from pathlib import Path
from typing import Any

from dynabench.client.commands.shared import add_command, format_table, open_client, print_result


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands, "data", data, "download a released round; without one, list them"
    )
    parser.add_argument("task", help="the task's code, such as nli")
    parser.add_argument("round", nargs="?", type=int, help="its number")
    parser.add_argument("--version", type=int, help="of the release; default: the newest")
    parser.add_argument("--inputs", metavar="SET", help="instead: the inputs of an evaluation set")
    parser.add_argument(
        "--to", default=".", type=Path, help="folder to write to; default: this one"
    )


def data(args: argparse.Namespace) -> int:
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
        return _list(args, client.datasets(args.task), client.evaluation_sets(args.task))
    print_result(args, {"path": str(path)}, f"It is in {path}.")
    return 0


def _list(args: argparse.Namespace, releases: list[Any], sets: list[Any]) -> int:
    """Print the released rounds and the evaluation sets of a task."""
    rows = []
    for release in releases:
        file_names = ", ".join(file["name"] for file in release["files"])
        rows.append([release["round"], release["version"], file_names])
    text = (
        format_table(["round", "version", "files"], rows) if rows else "No round is released yet."
    )
    names = ", ".join(each["name"] for each in sets)
    if names:
        text += f"\nEvaluation sets: {names}"
        text += f"\nTheir inputs, to answer: dynabench data {args.task} --inputs SET"
    print_result(args, {"datasets": releases, "evaluation_sets": sets}, text)
    return 0
