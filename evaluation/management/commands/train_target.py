"""Train a task's next target, and report what it learned."""

import json
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.web.refusals import as_command_error
from evaluation.heartbeat import no_beat
from evaluation.isolation.queue import leases
from evaluation.isolation.queue.subprocess_job import carry_out, tell
from evaluation.models import TrainingRun
from evaluation.runs.carriers import open_trainer
from evaluation.training.report_text import iterate_report_lines
from evaluation.training.services import (
    ROWS,
    SEED,
    check_round,
    find_default_base,
    find_free_name,
    find_uploaded_trainings,
    has_seed,
    register_trained,
    request_training,
)
from tasks.management.named import task_of
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
                            help="at most so many")  # fmt: skip
        parser.add_argument("--round", type=int, help="make it a target of this round")
        parser.add_argument("--name", help="name of the target; default: after task and round")
        parser.add_argument("--json", action="store_true", help="print the report as JSON")
        parser.add_argument("--run", type=int, help="for queue workers: do a claimed training")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["run"]:
            self._work(options["run"])
            return
        task = task_of(options["task"])
        if options["name"] and not options["round"]:
            raise CommandError("--name is of the target of a round: name that with --round.")
        with as_command_error():
            if options["round"]:
                check_round(task, options["round"])  # before the minutes that training takes
            run = self._train(task, options)
            if options["json"]:
                self.stdout.write(json.dumps({"run": run.pk, **run.report}, indent=2))
            else:
                self.stdout.write("\n".join(iterate_report_lines(run.report)))
            if options["round"]:
                name = options["name"] or find_free_name(task, options["round"])
                target = register_trained(run=run, number=options["round"], name=name, actor=None)
                self.stderr.write(f"{target} is a target of round {options['round']}.")

    def _train(self, task: Task, options: Mapping[str, Any]) -> TrainingRun:
        """Request the training and do it in this process, as a worker would."""
        base, revision = options["base"], options["revision"]
        if base is None:
            base, revision = find_default_base(task)
        # Workers run elsewhere: a relative path would be another folder there.
        elif Path(base).is_dir():
            base = str(Path(base).resolve())
        run = request_training(
            task=task,
            actor=None,
            weights=dict(self._weights(task, options)),
            base=base,
            revision=revision,
            seed=options["seed"],
            epochs=options["epochs"],
            ring=False,
        )
        claimed = leases.claim_job(TrainingRun, run.pk)
        if claimed is None:
            raise CommandError(f"A queue worker was quicker; see training {run.pk}.")
        try:
            carry_out(claimed, ["train_target", "--run", str(run.pk)], self._show)
        except KeyboardInterrupt:
            leases.fail(claimed, "Stopped by Ctrl-C.")
        if claimed.state != TrainingRun.State.DONE:
            raise CommandError(claimed.error or claimed.message)
        return claimed

    def _weights(self, task: Task, options: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
        """Yield each named source with its weight from --weight, by default 1."""
        weights = {}
        for text in filter(None, options["weight"].split(",")):
            source, weight = self._parse_weight(text)
            weights[source] = weight
        names = [f"round{number.strip()}" for number in options["rounds"].split(",") if number]
        if not options["no_seed"]:
            if has_seed(task):
                names.append(SEED)
            names += [f"{ROWS}{run.pk}" for run in find_uploaded_trainings(task)]
        unused = sorted(weights.keys() - set(names))
        if unused:
            raise CommandError(f"--weight names {unused[0]}, which is not trained on.")
        for name in names:
            yield name, weights.get(name, 1.0)

    def _parse_weight(self, text: str) -> tuple[str, float]:
        name, _, number = text.strip().partition("=")
        try:
            return name, float(number)
        except ValueError:
            raise CommandError(f"--weight {text!r}: write round1=2 or seed=0.5.") from None

    def _show(self, progress: float, message: str) -> None:
        self.stderr.write(f"{progress:4.0%} {message}")

    def _work(self, pk: int) -> None:
        """Do the training in this process, while a worker watches."""
        from evaluation.runs.ray_runner import ClusterFailed
        from evaluation.training.next_target import FAILURES, train_next  # loads torch

        run = TrainingRun.objects.select_related("task").get(pk=pk)
        with open_trainer(no_beat) as trainer:
            failures = (*FAILURES, ClusterFailed)
            tell(self.stdout, lambda show: train_next(run, show, trainer), failures)
