"""`dynabench data`: released rounds, and the inputs of sets that predictions are made for."""

import argparse
from pathlib import Path
from typing import Any

from dynabench.client.commands.shared import client_for, command, table, tell


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = command(commands, "data", data, "download a released round; without one, list them")
    parser.add_argument("task", help="the task's code, such as nli")
    parser.add_argument("round", nargs="?", type=int, help="its number")
    parser.add_argument("--version", type=int, help="of the release; default: the newest")
    parser.add_argument("--inputs", metavar="SET", help="instead: the inputs of an evaluation set")
    parser.add_argument(
        "--to", default=".", type=Path, help="folder to write to; default: this one"
    )


def data(args: argparse.Namespace) -> int:
    """Download, going on where an earlier try broke off, or list what there is."""
    client = client_for(args)
    args.to.mkdir(parents=True, exist_ok=True)
    if args.inputs:
        path = client.download_inputs(args.task, args.inputs, args.to)
    elif args.round is not None:
        path = client.download_data(args.task, args.round, args.version, args.to)
    else:
        return _list(args, client.datasets(args.task), client.evaluation_sets(args.task))
    tell(args, {"path": str(path)}, f"It is in {path}.")
    return 0


def _list(args: argparse.Namespace, releases: list[Any], sets: list[Any]) -> int:
    rows = [
        [one["round"], one["version"], ", ".join(file["name"] for file in one["files"])]
        for one in releases
    ]
    text = table(["round", "version", "files"], rows) if rows else "No round is released yet."
    names = ", ".join(one["name"] for one in sets)
    if names:
        text += f"\nEvaluation sets: {names}"
        text += f"\nTheir inputs, to answer: dynabench data {args.task} --inputs SET"
    tell(args, {"datasets": releases, "evaluation_sets": sets}, text)
    return 0
