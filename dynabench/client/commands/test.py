"""`dynabench test`: the server's check of a model, run on this machine."""

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

from dynabench.client.archive import list_allowed_files
from dynabench.client.client import DynabenchClient
from dynabench.client.commands.shared import (
    FAILED,
    USAGE,
    CommandError,
    add_command,
    open_client,
    print_note,
    print_result,
)

CHECK_PACKAGES = ("pydantic", "yaml", "orjson")
"""The packages that the server's check imports."""
HARNESS_PACKAGES = ("numpy", "torch", "transformers", "tokenizers", "safetensors")
"""The packages that are needed to run a model's folder without Docker."""
INSTALL_HINT = "Install the missing parts: pip install 'dynabench-client[test]'"
FULL_CLIENT_HINT = "Install it as described on the site's page “API tokens”, or from a checkout."


def add_commands(commands: Any) -> None:
    """Add the command to the parser."""
    parser = add_command(
        commands, "test", test_model, "check a model on this machine, as the server does"
    )
    target_group = parser.add_mutually_exclusive_group(required=True)
    target_group.add_argument(
        "model", nargs="?", help="a model's folder, or the name of a local Docker image"
    )
    target_group.add_argument(
        "--predictions", metavar="FILE", help="check answers to --set instead, as JSON lines"
    )
    parser.add_argument("--set", help="evaluation set of the predictions")
    parser.add_argument("--task", required=True, help="the task's code, such as nli")
    parser.add_argument(
        "--runner", choices=("docker", "process"), help="default: docker if it is running"
    )
    parser.add_argument(
        "--adapter",
        default="jsonl",
        choices=("jsonl", "dynalab", "dynabench2"),
        help="protocol of an image",
    )


def test_model(args: argparse.Namespace) -> int:
    """Run the server's check on a model and print its verdict.

    1. Refuse models that this machine cannot check.
    2. Fetch the task's configuration and the five examples of the check.
    3. Run the check on a copy of what would be submitted.

    A file of predictions is compared with its set instead (`_test_predictions`).
    """
    # A wheel that was built outside of a checkout lacks the server's modules.
    if not (find_server_modules() / "evaluation/isolation/inference/precheck.py").is_file():
        raise CommandError(
            f"This client was built without the server's check. {FULL_CLIENT_HINT}", USAGE
        )
    if args.predictions:
        return _test_predictions(args)
    _refuse_unfit_machine(args)
    check = open_client(args).check_inputs(args.task)
    with TemporaryDirectory() as name, _copy_submitted_files(args.model) as model:
        folder = Path(name)
        (folder / "task.yaml").write_text(check["config_text"], encoding="utf-8")
        lines = "".join(json.dumps({"inputs": each}) + "\n" for each in check["inputs"])
        (folder / "inputs.jsonl").write_text(lines, encoding="utf-8")
        arguments = [
            model,
            f"--config={folder / 'task.yaml'}",
            f"--inputs={folder / 'inputs.jsonl'}",
            f"--memory-gib={check['memory_gib']}",
            f"--cpus={check['cpus']}",
            f"--adapter={args.adapter}",
        ]
        if args.runner:
            arguments.append(f"--runner={args.runner}")
        report = _run_check(*arguments)
    if not report["ok"]:
        raise _build_refusal(report)
    print_result(args, report, _describe_acceptance(args.model, report))
    return 0


def _test_predictions(args: argparse.Namespace) -> int:
    """Compare each line of a predictions file with the inputs of its set, and print the verdict."""
    if not args.set:
        raise CommandError("Use --set to name the evaluation set of the predictions.", USAGE)
    if not Path(args.predictions).exists():
        raise CommandError(f"File not found: {args.predictions}.", USAGE)
    refuse_missing("The check", CHECK_PACKAGES)
    client = open_client(args)
    with TemporaryDirectory() as name:
        config = Path(name, "task.yaml")
        config.write_text(client.check_inputs(args.task)["config_text"], encoding="utf-8")
        inputs = client.download_inputs(args.task, args.set, name)
        report = _run_check(
            f"--config={config}",
            f"--predictions={Path(args.predictions).absolute()}",
            f"--uids={inputs}",
        )
    if not report["ok"]:
        raise _build_refusal(report)
    lines = [f"{args.predictions} would be accepted for {args.set}."]
    lines += [f"Note: {warning}" for warning in report["warnings"]]
    print_result(args, report, "\n".join(lines))
    return 0


def _build_refusal(report: dict[str, Any]) -> CommandError:
    """Print the model's log, and return the error for a negative report."""
    if report["log"]:
        print_note(f"Last lines of the model's log:\n{report['log'].rstrip()}")
    # This machine failed, so nothing is known about the model.
    is_our_fault = report["outcome"] == "infrastructure"
    return CommandError(report["message"], USAGE if is_our_fault else FAILED, report)


def _refuse_unfit_machine(args: argparse.Namespace) -> None:
    """Raise CommandError if this machine cannot run the check."""
    is_folder = Path(args.model).is_dir()
    in_docker = args.runner == "docker" or not is_folder
    # Without Docker the sandbox needs Linux' own limits.
    if not in_docker and sys.platform != "linux":
        raise CommandError(
            "Folders can be checked only on Linux. The server checks it when you submit it.",
            USAGE,
        )
    lead = "The check"
    if not is_folder:
        lead = f"{args.model} is not a folder. If it is an image, the check"
    refuse_missing(lead, CHECK_PACKAGES + (("docker",) if in_docker else HARNESS_PACKAGES))


def refuse_missing(lead: str, package_names: Sequence[str]) -> None:
    """Raise CommandError if packages are missing. lead: the beginning of the message."""
    missing_names = [name for name in package_names if find_spec(name) is None]
    if missing_names:
        raise CommandError(f"{lead} needs {', '.join(missing_names)}. {INSTALL_HINT}", USAGE)


@contextmanager
def _copy_submitted_files(model: str) -> Iterator[str]:
    """Yield the path of a copy of the files that `dynabench submit` would send from a folder.

    Yield `model` unchanged if it is not a folder but an image name.
    """
    folder = Path(model)
    if not folder.is_dir():
        yield model
        return
    _refuse_dockerfile(folder)
    files = list_allowed_files(folder)
    for path in sorted(set(folder.iterdir()) - set(files)):
        if not path.name.startswith("."):
            # Often code, which the server would not run.
            print_note(f"{path.name} won't be submitted.")
    with TemporaryDirectory() as name:
        # Unlike the temporary folder, other users may read this one, such as the sandbox's.
        copied_folder = Path(name, "model")
        copied_folder.mkdir()
        for path in files:
            shutil.copyfile(path, copied_folder / path.name)
        yield str(copied_folder)


def _refuse_dockerfile(folder: Path) -> None:
    """Raise CommandError if the folder contains a Dockerfile."""
    if (folder / "Dockerfile").exists():
        raise CommandError(
            f"{folder} contains a Dockerfile. Build the image and test it: docker build -t "
            f"name:1 {folder} && dynabench test name:1",
            USAGE,
        )


def check_folder(client: DynabenchClient, task: str, model: str) -> None:
    """Raise CommandError if the server would refuse the folder without running the model.

    Do nothing if this machine lacks the packages for the check. The command `test` makes the same
    check first.
    """
    if not Path(model).is_dir():
        return
    _refuse_dockerfile(Path(model))
    files = list_allowed_files(Path(model))
    if not all(map(find_spec, CHECK_PACKAGES)):
        return  # the server checks it after the upload
    with TemporaryDirectory() as name:
        folder, config = Path(name, "model"), Path(name, "task.yaml")
        folder.mkdir()
        # Links, as weights may have gigabytes and are only looked at.
        for path in files:
            (folder / path.name).symlink_to(path.resolve())
        config.write_text(client.check_inputs(task)["config_text"], encoding="utf-8")
        report = _run_check(str(folder), f"--config={config}", "--look")
    if not report["ok"]:
        raise CommandError(report["message"], FAILED)


def _run_check(*arguments: str) -> dict[str, Any]:
    """Run the server's check in a separate process and return its report.

    Raises CommandError if the process wrote no report.
    """
    print_note("Running the server's check …")
    root = find_server_modules()
    # `evaluation` is no package of the client, so its folder becomes the process's path.
    process = subprocess.run(
        [sys.executable, "-m", "evaluation.isolation.inference.precheck", *arguments],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    try:
        report: dict[str, Any] = json.loads(process.stdout)
    except ValueError:
        errors = process.stderr.strip().splitlines()
        last_line = errors[-1] if errors else f"exit code {process.returncode}"
        raise CommandError(
            f"The check failed to run ({last_line}). {INSTALL_HINT}", USAGE
        ) from None
    return report


def find_server_modules() -> Path:
    """Return the folder of the server's modules, in the wheel or in a checkout."""
    bundled_folder = Path(__file__).parents[2] / "_server"
    return bundled_folder if bundled_folder.is_dir() else Path(__file__).parents[3]


def _describe_acceptance(model: str, report: dict[str, Any]) -> str:
    """Return a text with the model's answers, and the time and memory that it used."""
    lines = [f"{model} would be accepted: it answered {len(report['answers'])} examples."]
    lines += [
        f"  {number}  {_format_answer(each)}" for number, each in enumerate(report["answers"], 1)
    ]
    lines += [f"Note: {warning}" for warning in report["warnings"]]
    usage = f"{report['seconds']:.1f} s"
    memory = report["peak_bytes"]
    if memory:  # not every runner measures it
        usage += f", {memory / 2**30:.2f} GiB of memory"
    lines.append(f"Runner {report['runner']}: {usage}.")
    return "\n".join(lines)


def _format_answer(answer: dict[str, Any]) -> str:
    """Return an answer as text, with its probability if the model gave one."""
    value, prob = answer["answer"], answer["prob"] or {}
    if isinstance(value, str) and value in prob:
        return f"{value}  ({prob[value]:.2f})"
    return str(value)
