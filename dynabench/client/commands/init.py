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

from dynabench.client.commands.shared import CommandError, client_for, command, note, tell

EXAMPLES = Path(__file__).parents[1] / "examples"
TEXTS = ("text", "long_text", "span")
Told = Mapping[str, Any]


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = command(commands, "init", init, "make an example model that works for a task")
    parser.add_argument("task", help="the task's code, such as nli")
    parser.add_argument("folder", nargs="?", type=Path, help="default: <task>-model, <task>-image")
    parser.add_argument("--image", action="store_true", help="an image instead of a folder")


def init(args: argparse.Namespace) -> int:
    """Write the files and, if the libraries are there, make the model."""
    found = client_for(args).check_inputs(args.task)
    kind = "image" if args.image else "folder"
    _refuse_unknown(args.task, found["model"], kind)
    folder = args.folder or Path(f"{args.task}-{'image' if args.image else 'model'}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CommandError(f"{folder} is there already. Name another folder after the task.")
    folder.mkdir(parents=True, exist_ok=True)
    _write(args.task, found, EXAMPLES / kind, folder)
    made = kind == "folder" and _make_model(folder)
    names = sorted(f"{path.name}/" if path.is_dir() else path.name for path in folder.iterdir())
    tell(
        args,
        {"folder": str(folder), "files": names},
        f"Made {folder}/ with {', '.join(names)}.\n{_next(args.task, folder, kind, made)}",
    )
    return 0


def _refuse_unknown(task: str, model: Told, kind: str) -> None:
    if kind == "folder" and model["kind"] is None:
        raise CommandError(
            f"Models for {task} are submitted as images, as a folder of weights cannot answer "
            f"{model['output']!r}. Use: dynabench init {task} --image"
        )
    if model["type"] not in ("multiclass", *TEXTS):
        raise CommandError(
            f"There is no example for answers of the type {model['type']}. What an image reads "
            "and writes is in docs/evaluation.md."
        )


def _write(task: str, found: Told, examples: Path, folder: Path) -> None:
    """All files; those of the examples with the task's names in them."""
    for path in examples.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    model, inputs = found["model"], found["inputs"]
    ids = [f"example-{number}" for number, _ in enumerate(inputs, 1)]
    asked = [{"id": id, "inputs": each} for id, each in zip(ids, inputs, strict=True)]
    answers = [{"id": id, **_answer(model, each)} for id, each in zip(ids, inputs, strict=True)]
    _put(folder / "task.json", json.dumps({"task": task, **model}, ensure_ascii=False, indent=1))
    _put(folder / "examples.jsonl", _lines(asked))
    _put(folder / "answers.jsonl", _lines(answers))
    readme = Template((folder / "README.md").read_text(encoding="utf-8"))
    name = folder.resolve().name.lower()
    _put(folder / "README.md", readme.substitute(task=task, name=name, rules=_rules(model)))


def _answer(model: Told, inputs: Told) -> dict[str, Any]:
    """An answer that has the right shape; whether it is right does not matter."""
    labels = model["labels"]
    if labels:
        prob = {label: 1.0 if label == labels[0] else 0.0 for label in labels}
        return {"output": {model["output"]: labels[0]}, "prob": prob}
    last = str(inputs[model["fields"][-1]])
    return {"output": {model["output"]: " ".join(last.split()[:3])}, "prob": None}


def _rules(model: Told) -> str:
    if model["labels"]:
        return (
            f"- The labels are {', '.join(model['labels'])}. A folder names them in `id2label` of "
            "config.json, in the order of\n  the model's logits; an image writes them as they are."
        )
    if model["type"] == "span":
        return "- The answer is a stretch of the passage, as it stands there."
    return "- The answer is a text."


def _put(path: Path, text: str) -> None:
    path.write_text(text if text.endswith("\n") else f"{text}\n", encoding="utf-8")


def _lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _make_model(folder: Path) -> bool:
    """Make the model, if torch and transformers are installed; whether it was made."""
    if not (find_spec("torch") and find_spec("transformers")):
        return False
    note("Making the model …")
    done = subprocess.run(
        [sys.executable, "make_model.py"], cwd=folder, capture_output=True, text=True
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise CommandError(f"{folder / 'make_model.py'} failed: {last}")
    return True


def _next(task: str, folder: Path, kind: str, made: bool) -> str:
    if kind == "image":
        return f"Next: python {folder / 'predict.py'} {folder / 'examples.jsonl'}"
    if made:
        return f"Next: dynabench test {folder / 'model'} --task {task}"
    return (
        "torch and transformers are not installed, so there is no model yet.\n"
        f"Next: pip install 'dynabench-client[test]' && python {folder / 'make_model.py'}"
    )
