"""`dynabench init`: a folder with an example model for a task, or one for a new benchmark."""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Any

from dynabench.client.benchmarks.starting import write_benchmark
from dynabench.client.commands.shared import (
    RETRIES,
    CommandError,
    add_command,
    find_server,
    open_client,
    print_note,
    print_result,
)
from dynabench.client.credentials import is_server_chosen
from dynabench.client.errors import DynabenchError, NotFound

EXAMPLES = Path(__file__).parents[1] / "examples"
TEXT_TYPES = ("text", "long_text", "span")
"""The types of answers that are texts."""
JsonObject = Mapping[str, Any]


def add_commands(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands, "init", write_folder, "create an example model for a task, or a new benchmark"
    )
    parser.add_argument(
        "task", help="the code of an existing task, such as nli; or the name of a new benchmark"
    )
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        help="folder to create; default: <task>-model or <task>-image, or the benchmark's name",
    )
    kind_group = parser.add_mutually_exclusive_group()
    kind_group.add_argument(
        "--image", action="store_true", help="create an image instead of a folder"
    )
    kind_group.add_argument(
        "--benchmark",
        action="store_true",
        help="create a new benchmark, without asking the server whether the task exists",
    )


def write_folder(args: argparse.Namespace) -> int:
    """Write the folder of a new benchmark, or an example model for a task that exists."""
    if args.benchmark:
        return write_new_benchmark(args)
    # Only one word, such as `dynabench init my-benchmark`: the server knows which one is meant.
    if not args.image and args.folder is None and (reason := _find_why_new(args)):
        print_note(reason)
        return write_new_benchmark(args)
    return write_example(args)


def _find_why_new(args: argparse.Namespace) -> str:
    """Return why a name is that of a new benchmark; "" if it is the code of a task.

    Raises CommandError for a name that looks like a misspelt task.
    """
    server = find_server(args)
    # The first step of a new person, who has chosen no server: nothing may be running here.
    is_chosen = bool(args.server) or is_server_chosen()
    client = open_client(args, retries=RETRIES if is_chosen else 0)
    try:
        client.check_inputs(args.task)
        return ""
    except NotFound:
        codes = [task["code"] for task in client.tasks()]
    except DynabenchError:
        if is_chosen:
            raise
        return f"No server at {server}, so {args.task} is a new benchmark."
    if args.task in codes:
        return ""
    if similar_codes := get_close_matches(args.task, codes):
        raise CommandError(
            f"There is no task {args.task} on {server}. Did you mean "
            f"{', '.join(similar_codes)}? For a new benchmark of this name: dynabench init "
            f"{args.task} --benchmark"
        )
    return f"There is no task {args.task} on {server}, so this is a new benchmark."


def write_new_benchmark(args: argparse.Namespace) -> int:
    """Write the files of a new benchmark. Needs no server."""
    folder = args.folder or Path(args.task)
    _refuse_filled_folder(folder)
    names = write_benchmark(folder, folder.resolve().name if args.folder else args.task)
    text = (
        f"Created {folder}/ with {', '.join(names)}.\n"
        f"Next: edit {folder / 'task.yaml'}, then dynabench apply {folder} --dry-run"
    )
    print_result(args, {"folder": str(folder), "files": names}, text)
    return 0


def _refuse_filled_folder(folder: Path) -> None:
    """Raise CommandError unless the folder is new or empty."""
    # An empty folder is fine: people make one first, or use a mounted one.
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CommandError(f"{folder} already exists. Give another folder after the name.")


def write_example(args: argparse.Namespace) -> int:
    """Write the files of an example and, if the libraries are installed, create its model.

    1. Ask the server for the task's requirements and for the inputs of its check.
    2. Write the example's files, adapted to the task.
    3. Create the model of a model folder.
    """
    check = open_client(args).check_inputs(args.task)
    if args.image:
        kind, default_folder = "image", f"{args.task}-image"
    else:
        kind, default_folder = "folder", f"{args.task}-model"
    _refuse_unsupported_task(args.task, check["model"], kind)
    folder = args.folder or Path(default_folder)
    _refuse_filled_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _write_files(args.task, check, EXAMPLES / kind, folder)
    has_model = kind == "folder" and _make_model(folder)
    names = sorted(f"{path.name}/" if path.is_dir() else path.name for path in folder.iterdir())
    next_step = _describe_next_step(args.task, folder, kind, has_model)
    text = f"Created {folder}/ with {', '.join(names)}.\n{next_step}"
    print_result(args, {"folder": str(folder), "files": names}, text)
    return 0


def _refuse_unsupported_task(task: str, model: JsonObject, kind: str) -> None:
    """Raise CommandError if there is no example of this kind for the task's models."""
    if kind == "folder" and model["kind"] is None:
        raise CommandError(
            f"{task} needs an image, because a model folder cannot answer "
            f"{model['output']!r}. Run: dynabench init {task} --image"
        )
    if model["type"] not in ("multiclass", *TEXT_TYPES):
        raise CommandError(
            f"There is no example for answers of the type {model['type']}. See "
            "docs/evaluation.md for what an image reads and writes."
        )


def _write_files(task: str, check: JsonObject, examples: Path, folder: Path) -> None:
    """Write the files of the example, and files with the task's names, fields and examples."""
    for path in examples.iterdir():
        if path.is_file():
            # The examples are files that run as they are; only the README has places to fill in.
            shutil.copy(path, folder)
    model = check["model"]
    inputs, answers = [], []
    for position, example_inputs in enumerate(check["inputs"], 1):
        id = f"example-{position}"
        inputs.append({"id": id, "inputs": example_inputs})
        answers.append({"id": id, **_build_example_answer(model, example_inputs)})
    _write_text(
        folder / "task.json", json.dumps({"task": task, **model}, ensure_ascii=False, indent=1)
    )
    _write_text(folder / "examples.jsonl", _encode_json_lines(inputs))
    _write_text(folder / "answers.jsonl", _encode_json_lines(answers))
    readme = Template((folder / "README.md").read_text(encoding="utf-8"))
    # Names of images have no capitals.
    name = folder.resolve().name.lower()
    rules = _describe_answers(model)
    _write_text(folder / "README.md", readme.substitute(task=task, name=name, rules=rules))


def _build_example_answer(model: JsonObject, inputs: JsonObject) -> dict[str, Any]:
    """Return an answer of the right shape. Its content is arbitrary."""
    labels = model["labels"]
    if labels:
        prob = dict.fromkeys(labels, 0.0) | {labels[0]: 1.0}
        return {"output": {model["output"]: labels[0]}, "prob": prob}
    # The first words of the passage: a stretch of it, also where the task asks for one.
    passage = str(inputs[model["fields"][-1]])
    return {"output": {model["output"]: " ".join(passage.split()[:3])}, "prob": None}


def _describe_answers(model: JsonObject) -> str:
    """Return the README's sentence about the task's answers."""
    if model["labels"]:
        return (
            f"- The labels are {', '.join(model['labels'])}. A folder lists them in "
            "`id2label` of config.json, in the order of\n  the model's logits. An image "
            "writes them unchanged."
        )
    if model["type"] == "span":
        return "- The answer is a part of the text, copied exactly."
    return "- The answer is a text."


def _write_text(path: Path, text: str) -> None:
    """Write a text to a file, ending with a line break."""
    path.write_text(text if text.endswith("\n") else f"{text}\n", encoding="utf-8")


def _encode_json_lines(rows: list[dict[str, Any]]) -> str:
    """Return rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _make_model(folder: Path) -> bool:
    """Create the model and return True, or return False without torch or transformers.

    Raises CommandError.
    """
    if not (find_spec("torch") and find_spec("transformers")):
        return False
    print_note("Creating the model …")
    # The file that the user may run again, after changing it.
    process = subprocess.run(
        [sys.executable, "make_model.py"], cwd=folder, capture_output=True, text=True
    )
    if process.returncode:
        last_line = (process.stderr.strip().splitlines() or ["no error message"])[-1]
        raise CommandError(f"{folder / 'make_model.py'} failed: {last_line}")
    return True


def _describe_next_step(task: str, folder: Path, kind: str, has_model: bool) -> str:
    """Return the next command to run."""
    if kind == "image":
        return f"Next: python {folder / 'predict.py'} {folder / 'examples.jsonl'}"
    if has_model:
        return f"Next: dynabench test {folder / 'model'} --task {task}"
    return (
        "To create the model, install torch and transformers.\nNext: pip install "
        f"'dynabench-client[test]' && python {folder / 'make_model.py'}"
    )
