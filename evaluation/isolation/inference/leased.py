"""Run the model of one lease on a user's own machine; write its answers to a file. No Django.

    python -m evaluation.isolation.inference.leased FOLDER --config FILE --key NAME --digest SHA

FOLDER contains `model.tar` and `inputs.jsonl`, and receives `answers.jsonl`. Prints one JSON
object: `runner`, and `ending` with `outcome`, `sentence` and `usage`. The log goes to standard
error.
"""

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluation.contract import Ending, Outcome, Runnable
from evaluation.heartbeat import skip_beat
from evaluation.isolation.sandbox.choose import NoEngine, choose_runner
from evaluation.isolation.sandbox.limits import Limits
from evaluation.isolation.uploads import archives
from evaluation.isolation.uploads.model_folders import digest_folder
from evaluation.task_shape import make_runnable
from tasks.config.loading import load_config
from tasks.config.schema import TaskConfig


class WrongModel(Exception):
    """Raised when the model that arrived is not the one that was checked."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the model and print how it ended. Returns 0, whatever the outcome.

    arguments: the command-line arguments; None for those of this process.
    """
    options = _parse_arguments(arguments)
    signal.signal(signal.SIGTERM, _stop)
    config = load_config(options.config.read_text())
    try:
        model = _unpack_model(config, options)
        runner = choose_runner(model, options.key, options.runner)
    except (NoEngine, WrongModel, archives.ArchiveRefused) as error:
        ending, runner_name = Ending(Outcome.INFRASTRUCTURE, sentence=str(error)), "none"
    else:
        limits = Limits.build_for_machine(options.memory_gib, options.cpus, options.seconds)
        with (options.folder / "answers.jsonl").open("wb") as file:
            ending = runner.run(
                model,
                options.folder / "inputs.jsonl",
                limits,
                take=lambda line: _write_line(file, line),
                beat=skip_beat,
            )
        runner_name = runner.name
    print(ending.log, file=sys.stderr)
    # The site doesn't take the measurements: it can't check those of another machine.
    sent_usage = replace(ending.usage, measurements=None)
    usage = {key: value for key, value in vars(sent_usage).items() if value is not None}
    report = {"outcome": ending.outcome, "sentence": ending.sentence[:500], "usage": usage}
    print(json.dumps({"runner": runner_name, "ending": report}))
    return 0


def _stop(number: int, frame: object) -> None:
    """Exit on SIGTERM, sent when the lease is lost, so that no sandbox is left running."""
    raise SystemExit(1)


def _write_line(file: Any, line: bytes) -> None:
    file.write(line + b"\n")


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="evaluation.isolation.inference.leased", description=__doc__
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--config", type=Path, required=True, help="the task's configuration")
    parser.add_argument("--key", required=True, help="names the container")
    parser.add_argument("--digest", required=True, help="of the folder's files; of an image its id")
    parser.add_argument("--image", action="store_true", help="model.tar is one of docker save")
    parser.add_argument("--adapter", default="jsonl")
    parser.add_argument("--runner", choices=("docker", "process"))
    parser.add_argument("--memory-gib", type=int, default=8)
    parser.add_argument("--cpus", type=float, default=2)
    parser.add_argument("--seconds", type=float, default=3600)
    return parser.parse_args(arguments)


def _unpack_model(config: TaskConfig, options: argparse.Namespace) -> Runnable:
    """Unpack the model of the lease and return it.

    Raises NoEngine, WrongModel and ArchiveRefused.
    """
    archive = options.folder / "model.tar"
    if not options.image:
        folder = options.folder / "model"
        archives.unpack_archive(archive, folder)
        if digest_folder(folder, skip_beat) != options.digest:
            raise WrongModel("What came is not the folder that was checked.")
        return make_runnable(config, folder=folder)
    from evaluation.isolation.sandbox import images

    if not images.has_image(options.digest) and images.load_image(archive) != options.digest:
        raise WrongModel("What came is not the image that was checked.")
    return make_runnable(config, image=options.digest, adapter=options.adapter)


if __name__ == "__main__":
    sys.exit(main())
