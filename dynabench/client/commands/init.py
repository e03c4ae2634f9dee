"""`dynabench init`: a folder with an example model that works for a task."""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Any

from dynabench.client.commands.shared import (
    CommandError,
    add_command,
    open_client,
    print_note,
    print_result,
)

EXAMPLES = Path(__file__).parents[1] / "examples"
TEXT_TYPES = ("text", "long_text", "span")
"""Types of answers that are texts."""
JsonObject = Mapping[str, Any]


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "init", init, "make an example model that works for a task")
    parser.add_argument("task", help="the task's code, such as nli")
    parser.add_argument("folder", nargs="?", type=Path, help="default: <task>-model, <task>-image")
    parser.add_argument("--image", action="store_true", help="an image instead of a folder")


def init(args: argparse.Namespace) -> int:
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
    _refuse_unknown(args.task, check["model"], kind)
    folder = args.folder or Path(default_folder)
    # An empty folder is fine: people make one first, or use a mounted one.
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CommandError(f"{folder} is there already. Name another folder after the task.")
    folder.mkdir(parents=True, exist_ok=True)
    _write_files(args.task, check, EXAMPLES / kind, folder)
    has_model = kind == "folder" and _make_model(folder)
    names = sorted(f"{path.name}/" if path.is_dir() else path.name for path in folder.iterdir())
    next_step = _describe_next_step(args.task, folder, kind, has_model)
    text = f"Made {folder}/ with {', '.join(names)}.\n{next_step}"
    print_result(args, {"folder": str(folder), "files": names}, text)
    return 0


def _refuse_unknown(task: str, model: JsonObject, kind: str) -> None:
    """Raise CommandError if there is no example for such models."""
    if kind == "folder" and model["kind"] is None:
        raise CommandError(
            f"Models for {task} are submitted as images, as a folder of weights cannot answer "
            f"{model['output']!r}. Use: dynabench init {task} --image"
        )
    if model["type"] not in ("multiclass", *TEXT_TYPES):
        raise CommandError(
            f"There is no example for answers of the type {model['type']}. What an image reads "
            "and writes is in docs/evaluation.md."
        )


def _write_files(task: str, check: JsonObject, examples: Path, folder: Path) -> None:
    """Write all files, with the task's names inserted into those of the examples."""
    for path in examples.iterdir():
        if path.is_file():
            # The examples are files that run as they are; only the README has places to fill in.
            shutil.copy(path, folder)
    model = check["model"]
    inputs, answers = [], []
    for number, example_inputs in enumerate(check["inputs"], 1):
        id = f"example-{number}"
        inputs.append({"id": id, "inputs": example_inputs})
        answers.append({"id": id, **_build_example_answer(model, example_inputs)})
    _write(folder / "task.json", json.dumps({"task": task, **model}, ensure_ascii=False, indent=1))
    _write(folder / "examples.jsonl", _encode_json_lines(inputs))
    _write(folder / "answers.jsonl", _encode_json_lines(answers))
    readme = Template((folder / "README.md").read_text(encoding="utf-8"))
    # Names of images have no capitals.
    name = folder.resolve().name.lower()
    rules = _describe_answers(model)
    _write(folder / "README.md", readme.substitute(task=task, name=name, rules=rules))


def _build_example_answer(model: JsonObject, inputs: JsonObject) -> dict[str, Any]:
    """Return an answer of the right shape, whatever its content."""
    labels = model["labels"]
    if labels:
        prob = dict.fromkeys(labels, 0.0) | {labels[0]: 1.0}
        return {"output": {model["output"]: labels[0]}, "prob": prob}
    # The first words of the passage: a stretch of it, also where the task asks for one.
    last = str(inputs[model["fields"][-1]])
    return {"output": {model["output"]: " ".join(last.split()[:3])}, "prob": None}


def _describe_answers(model: JsonObject) -> str:
    """Return the README's text about the task's answers."""
    if model["labels"]:
        return (
            f"- The labels are {', '.join(model['labels'])}. A folder names them in `id2label` of "
            "config.json, in the order of\n  the model's logits; an image writes them as they are."
        )
    if model["type"] == "span":
        return "- The answer is a stretch of the passage, as it stands there."
    return "- The answer is a text."


def _write(path: Path, text: str) -> None:
    """Write a file and end it with a line break."""
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
    print_note("Making the model …")
    # The file that the user may run again, after changing it.
    process = subprocess.run(
        [sys.executable, "make_model.py"], cwd=folder, capture_output=True, text=True
    )
    if process.returncode:
        last = (process.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise CommandError(f"{folder / 'make_model.py'} failed: {last}")
    return True


def _describe_next_step(task: str, folder: Path, kind: str, has_model: bool) -> str:
    """Return the next command to run."""
    if kind == "image":
        return f"Next: python {folder / 'predict.py'} {folder / 'examples.jsonl'}"
    if has_model:
        return f"Next: dynabench test {folder / 'model'} --task {task}"
    return (
        "torch and transformers are not installed, so there is no model yet.\n"
        f"Next: pip install 'dynabench-client[test]' && python {folder / 'make_model.py'}"
    )
