"""Train a task's next target, and report what it learned."""

import json
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.web.refusals import raise_as_command_error
from evaluation.heartbeat import skip_beat
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.subprocess_job import report_work, run_subprocess_job
from evaluation.models import TrainingRun
from evaluation.runs.carriers import open_trainer
from evaluation.training.report_text import iterate_report_lines
from evaluation.training.services import (
    ROWS,
    SEED,
    check_round_accepts_target,
    find_default_base,
    find_free_name,
    find_uploaded_trainings,
    has_seed,
    register_trained_target,
    request_training,
)
from tasks.management.lookups import get_task
from tasks.models import Task


class Command(BaseCommand):
    help = "Fine-tune a task's next target on its seed rows and on released rounds."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("task", nargs="?", help="the task's code, such as nli")
        parser.add_argument("--rounds", default="", help="released rounds to train on: 1,2")
        parser.add_argument(
            "--no-seed", action="store_true", help="leave the seed rows and uploaded rows out"
        )
        parser.add_argument("--weight", default="", metavar="round1=2,seed=1",
                            help="how often an epoch sees a row; default 1")  # fmt: skip
        parser.add_argument("--base", help="a folder or a hub id to start from; default: the "
                            "current target, or the starters' encoder")  # fmt: skip
        parser.add_argument("--revision", default="", help="full commit of a hub id")
        parser.add_argument("--seed", type=int, default=0, help="of chance")
        parser.add_argument("--epochs", type=int, choices=range(1, 101), metavar="1-100",
                            help="maximum number of epochs")  # fmt: skip
        parser.add_argument("--round", type=int, help="make it a target of this round")
        parser.add_argument("--name", help="name of the target; default: after task and round")
        parser.add_argument("--json", action="store_true", help="print the report as JSON")
        parser.add_argument("--run", type=int, help="for queue workers: do a claimed training")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["run"]:
            self._train_in_process(options["run"])
            return
        task = get_task(options["task"])
        if options["name"] and not options["round"]:
            raise CommandError("--name is of the target of a round: name that with --round.")
        with raise_as_command_error():
            if options["round"]:
                check_round_accepts_target(
                    task, options["round"]
                )  # checked before training, which takes minutes
            run = self._train(task, options)
            if options["json"]:
                self.stdout.write(json.dumps({"run": run.pk, **run.report}, indent=2))
            else:
                self.stdout.write("\n".join(iterate_report_lines(run.report)))
            if options["round"]:
                name = options["name"] or find_free_name(task, options["round"])
                target = register_trained_target(
                    run=run, number=options["round"], name=name, actor=None
                )
                self.stderr.write(f"{target} is a target of round {options['round']}.")

    def _train(self, task: Task, options: Mapping[str, Any]) -> TrainingRun:
        """Request a training run and do it right away, in a process of its own; return it.

        Raises CommandError if it fails, or if a queue worker took it first.
        """
        base_folder, revision = options["base"], options["revision"]
        if base_folder is None:
            base_folder, revision = find_default_base(task)
        # Workers run elsewhere: a relative path would be another folder there.
        elif Path(base_folder).is_dir():
            base_folder = str(Path(base_folder).resolve())
        run = request_training(
            task=task,
            actor=None,
            weights=dict(self._read_weights(task, options)),
            base=base_folder,
            revision=revision,
            seed=options["seed"],
            epochs=options["epochs"],
            wakes_worker=False,
        )
        claimed_run = leases.claim_job(TrainingRun, run.pk)
        if claimed_run is None:
            raise CommandError(f"A queue worker was quicker; see training {run.pk}.")
        try:
            run_subprocess_job(
                claimed_run, ["train_target", "--run", str(run.pk)], self._show_progress
            )
        except KeyboardInterrupt:
            leases.fail_job(claimed_run, "Stopped by Ctrl-C.")
        if claimed_run.state != TrainingRun.State.DONE:
            raise CommandError(claimed_run.error or claimed_run.message)
        return claimed_run

    def _read_weights(self, task: Task, options: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
        """Yield each source to train on with its weight from --weight, by default 1.

        These are the rounds of --rounds and, without --no-seed, the seed and uploaded rows. Raises
        CommandError if --weight names any other source.
        """
        weights = {}
        for text in filter(None, options["weight"].split(",")):
            source, weight = self._parse_weight(text)
            weights[source] = weight
        sources = [f"round{number.strip()}" for number in options["rounds"].split(",") if number]
        if not options["no_seed"]:
            if has_seed(task):
                sources.append(SEED)
            sources += [f"{ROWS}{run.pk}" for run in find_uploaded_trainings(task)]
        unused_sources = sorted(weights.keys() - set(sources))
        if unused_sources:
            raise CommandError(f"--weight names {unused_sources[0]}, which is not trained on.")
        for source in sources:
            yield source, weights.get(source, 1.0)

    def _parse_weight(self, text: str) -> tuple[str, float]:
        name, _, number = text.strip().partition("=")
        try:
            return name, float(number)
        except ValueError:
            raise CommandError(f"--weight {text!r}: write round1=2 or seed=0.5.") from None

    def _show_progress(self, progress: float, message: str) -> None:
        self.stderr.write(f"{progress:4.0%} {message}")

    def _train_in_process(self, pk: int) -> None:
        """Do the training run with this id in this process, which a worker watches."""
        from evaluation.runs.ray_runner import ClusterFailed
        from evaluation.training.next_target import FAILURE_ERRORS, train_next_target  # loads torch

        run = TrainingRun.objects.select_related("task").get(pk=pk)
        with open_trainer(skip_beat) as trainer:
            failures = (*FAILURE_ERRORS, ClusterFailed)
            report_work(self.stdout, lambda show: train_next_target(run, show, trainer), failures)
