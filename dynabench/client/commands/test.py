"""`dynabench test`: the server's own check of a model, on this machine."""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dynabench.client.archive import allowed_files
from dynabench.client.client import DynabenchClient
from dynabench.client.commands.shared import (
    FAILED,
    USAGE,
    CommandError,
    client_for,
    command,
    note,
    tell,
)

CHECK = ("pydantic", "yaml", "orjson")
HARNESS = ("numpy", "torch", "transformers", "tokenizers", "safetensors")
INSTALL = "Install what it needs: pip install 'dynabench-client[test]'"

WHOLE = "Install it as the site's page “Tokens” says, or from a checkout."


def add(commands: Any) -> None:
    """Add the command to the parser."""
    parser = command(commands, "test", test, "check a model here as the server will")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("model", nargs="?", help="a model's folder, or an image that Docker has here")
    what.add_argument("--predictions", metavar="FILE", help="JSON lines for --set, instead")
    parser.add_argument("--set", help="which set the predictions are for")
    parser.add_argument("--task", required=True, help="the task's code, such as nli")
    parser.add_argument(
        "--runner", choices=("docker", "process"), help="default: docker where it answers"
    )
    parser.add_argument(
        "--adapter",
        default="jsonl",
        choices=("jsonl", "dynalab", "dynabench2"),
        help="how an image is asked",
    )


def test(args: argparse.Namespace) -> int:
    """Have the five examples of the server answered, and say what it would say.

    Of a file of predictions each line is compared with its set.
    """
    if not (server_modules() / "evaluation/isolation/inference/precheck.py").is_file():
        raise CommandError(f"This client was built without the server's check. {WHOLE}", USAGE)
    if args.predictions:
        return _predictions(args)
    _refuse_lacking(args)
    found = client_for(args).check_inputs(args.task)
    with TemporaryDirectory() as name, _handed_in(args.model) as model:
        folder = Path(name)
        (folder / "task.yaml").write_text(found["config_text"], encoding="utf-8")
        lines = "".join(json.dumps({"inputs": each}) + "\n" for each in found["inputs"])
        (folder / "inputs.jsonl").write_text(lines, encoding="utf-8")
        report = _check(
            model,
            f"--config={folder / 'task.yaml'}",
            f"--inputs={folder / 'inputs.jsonl'}",
            f"--memory-gib={found['memory_gib']}",
            f"--cpus={found['cpus']}",
            f"--adapter={args.adapter}",
            *([f"--runner={args.runner}"] if args.runner else []),
        )
    if report["ok"]:
        tell(args, report, _accepted(args.model, report))
        return 0
    raise _refused(report)


def _predictions(args: argparse.Namespace) -> int:
    """Compare each line of a file with the inputs of its set, and say what the server would say."""
    if not args.set:
        raise CommandError("Name the set that the predictions are for with --set.", USAGE)
    if not Path(args.predictions).exists():
        raise CommandError(f"There is no file {args.predictions}.", USAGE)
    _refuse_missing("The check", CHECK)
    client = client_for(args)
    with TemporaryDirectory() as name:
        config = Path(name, "task.yaml")
        config.write_text(client.check_inputs(args.task)["config_text"], encoding="utf-8")
        inputs = client.download_inputs(args.task, args.set, name)
        report = _check(
            f"--config={config}",
            f"--predictions={Path(args.predictions).absolute()}",
            f"--uids={inputs}",
        )
    if not report["ok"]:
        raise _refused(report)
    lines = [f"{args.predictions} would be accepted for {args.set}."]
    tell(args, report, "\n".join([*lines, *(f"Note: {one}" for one in report["warnings"])]))
    return 0


def _refused(report: dict[str, Any]) -> CommandError:
    """The error for a report of what would not be accepted."""
    if report["log"]:
        note(f"The end of the model's log:\n{report['log'].rstrip()}")
    here = report["outcome"] == "infrastructure"  # nothing is known of the model
    return CommandError(report["message"], USAGE if here else FAILED, report)


def _refuse_lacking(args: argparse.Namespace) -> None:
    """Raises CommandError where this machine lacks what the check needs."""
    is_folder = Path(args.model).is_dir()
    in_docker = args.runner == "docker" or not is_folder
    if not in_docker and sys.platform != "linux":
        raise CommandError(
            "A folder is checked here on Linux only. The server checks it when you submit it.",
            USAGE,
        )
    image = f"There is no folder {args.model}. If it is an image, the check"
    lead = "The check" if is_folder else image
    _refuse_missing(lead, (*CHECK, "docker") if in_docker else (*CHECK, *HARNESS))


def _refuse_missing(lead: str, needed: Sequence[str]) -> None:
    """Raises CommandError for packages that are not here. lead: how the sentence begins."""
    if missing := [name for name in needed if find_spec(name) is None]:
        raise CommandError(f"{lead} lacks {', '.join(missing)} on this machine. {INSTALL}", USAGE)


@contextmanager
def _handed_in(model: str) -> Iterator[str]:
    """A copy of what `dynabench submit` would send of a folder; an image's name as it is."""
    folder = Path(model)
    if not folder.is_dir():
        yield model
        return
    _refuse_dockerfile(folder)
    files = allowed_files(folder)
    for path in sorted({*folder.iterdir()} - {*files}):
        if not path.name.startswith("."):
            note(f"{path.name} is left out when the folder is submitted.")
    with TemporaryDirectory() as name:
        copy = Path(name, "model")  # others may read it, such as the sandbox's user
        copy.mkdir()
        for path in files:
            shutil.copyfile(path, copy / path.name)
        yield str(copy)


def _refuse_dockerfile(folder: Path) -> None:
    if (folder / "Dockerfile").exists():
        raise CommandError(
            f"{folder} makes an image. Build it and test that: docker build -t name:1 {folder}; "
            "then: dynabench test name:1",
            USAGE,
        )


def look_through(client: DynabenchClient, task: str, model: str) -> None:
    """Refuse a folder that the server would refuse unasked, where this machine can tell.

    What `test` does before it asks the model anything. Raises CommandError.
    """
    if not Path(model).is_dir():
        return
    _refuse_dockerfile(Path(model))
    files = allowed_files(Path(model))
    if not all(map(find_spec, CHECK)):
        return  # the server looks
    with TemporaryDirectory() as name:
        folder, config = Path(name, "model"), Path(name, "task.yaml")
        folder.mkdir()
        for path in files:
            (folder / path.name).symlink_to(path.resolve())
        config.write_text(client.check_inputs(task)["config_text"], encoding="utf-8")
        report = _check(str(folder), f"--config={config}", "--look")
    if not report["ok"]:
        raise CommandError(report["message"], FAILED)


def _check(*arguments: str) -> dict[str, Any]:
    """The report of the server's check, in a separate process."""
    note("Checking it as the server does …")
    root = server_modules()
    done = subprocess.run(
        [sys.executable, "-m", "evaluation.isolation.inference.precheck", *arguments],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        last = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
        raise CommandError(f"The check could not be made ({last}). {INSTALL}", USAGE) from None
    return report


def server_modules() -> Path:
    """Where the server's modules are: what the wheel carries of them, or the whole checkout."""
    carried = Path(__file__).parents[2] / "_server"
    return carried if carried.is_dir() else Path(__file__).parents[3]


def _accepted(model: str, report: dict[str, Any]) -> str:
    lines = [f"{model} would be accepted: it answered {len(report['answers'])} examples."]
    lines += [f"  {number}  {_answer(each)}" for number, each in enumerate(report["answers"], 1)]
    lines += [f"Note: {warning}" for warning in report["warnings"]]
    memory = report["peak_bytes"]
    used = f", {memory / 2**30:.2f} GiB of memory" if memory else ""
    lines.append(f"Runner {report['runner']}: {report['seconds']:.1f} s{used}.")
    return "\n".join(lines)


def _answer(answer: dict[str, Any]) -> str:
    value, prob = answer["answer"], answer["prob"] or {}
    chance = f"  ({prob[value]:.2f})" if isinstance(value, str) and value in prob else ""
    return f"{value}{chance}"
