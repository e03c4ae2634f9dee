"""Write a board for other leaderboards to read: a record for each model, and its answers."""

import hashlib
import json
import os
import uuid
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse

from core.web.refusals import raise_as_command_error
from evaluation.kinds import KINDS
from evaluation.models import EvaluationRun, EvaluationSet, Submission
from evaluation.runs.selectors import filter_counting_runs
from evaluation.submissions.visibility import publishes_labels
from leaderboard.board.croissant_solutions import build_problems, build_solutions
from leaderboard.board.every_eval_ever import ModelFacts, build_records, name_models
from leaderboard.board.hub_results import (
    HubBenchmark,
    parse_benchmarks,
    write_eval_results,
    write_model_index,
)
from tasks.management.lookups import get_task
from tasks.models import Task

SCRATCH_NAME = ".unfinished"
"""The folder with the files of an export that is not complete."""
FORMATS = ("every-eval-ever", "hub", "croissant-tasks", "inspect")


class Command(BaseCommand):
    help = "Export a leaderboard, or a snapshot of one (docs/how-to-read-a-leaderboard.md)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("task", metavar="CODE", help="the task's code, such as nli")
        parser.add_argument("--to", choices=FORMATS, default=FORMATS[0], help="the format")
        parser.add_argument("--output", type=Path, required=True, help="folder to write to")
        parser.add_argument("--snapshot", type=int, help="number of a snapshot; default: the board")
        parser.add_argument("--model", help="only this model, by its id")
        parser.add_argument(
            "--dataset", action="append", default=[], metavar="ROUND=REPOSITORY",
            help="for the hub: where a round's release is published, such as 1=lab/nli-round1",
        )  # fmt: skip

    @raise_as_command_error()
    def handle(self, *args: Any, **options: Any) -> None:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the matrices are small
        task = get_task(options["task"])
        if task.config.kind == "arena":
            raise CommandError("An arena has no sets. Use arena_report --json.")
        table, address = _read_table(task, options["snapshot"])
        if options["model"]:
            rows = [row for row in table["rows"] if row["id"] == options["model"]]
            if not rows:
                raise CommandError(f"The board has no model with the id {options['model']}.")
            table = {**table, "rows": rows}
        output: Path = options["output"]
        try:
            with _open_scratch_folder(output) as scratch:
                sentence = self._write(task, table, address, scratch, options)
                _move_files(scratch, output)
        except OSError as error:
            raise CommandError(f"Nothing is exported: {error}") from error
        self.stdout.write(sentence.format(output=output))

    def _write(
        self,
        task: Task,
        table: Mapping[str, Any],
        address: str,
        folder: Path,
        options: Mapping[str, Any],
    ) -> str:
        """Write a board in the format of the options; return a sentence that tells the result.

        The sentence has `{output}` for the name of the folder. Raises CommandError if there is
        nothing to write.
        """
        if options["to"] == "hub":
            return self._write_for_hub(task, table, address, folder, options["dataset"])
        if options["to"] == "inspect":
            return self._write_logs(task, table, folder)
        if options["to"] == "croissant-tasks":
            count = self._write_solutions(task, table, address, folder)
        else:
            count = self._write_records(task, table, address, folder)
        if not count:
            raise CommandError("The board has no results yet.")
        return f"{count} models are in {{output}}."

    def _write_records(
        self, task: Task, table: Mapping[str, Any], address: str, output: Path
    ) -> int:
        """Write the files of each model with a result; return their number."""
        files, count = _find_files(task), 0
        for record in build_records(table, address, _find_facts(task, table)):
            organisation, name = record["model_info"]["id"].split("/", 1)
            # The same board gives the same names, so that a second export replaces the first.
            digest = hashlib.sha256(record["evaluation_id"].encode()).digest()
            number = uuid.UUID(bytes=digest[:16], version=4)  # which the schema requires
            folder = Path("data", f"dynabench-{task.code}", organisation, name)
            samples = folder / f"{number}_samples.jsonl"
            model_id = record["model_info"]["additional_details"]["dynabench_id"]
            runs = _find_public_runs(task, files.get(model_id, (model_id,)))
            record = self._add_answers(task, record, runs, output / samples, samples)
            _write_json(output / folder / f"{number}.json", record)
            count += 1
        return count

    def _write_logs(self, task: Task, table: Mapping[str, Any], output: Path) -> str:
        """Write a log of Inspect for each model and set with published labels.

        Returns a sentence as `_write` does. Raises CommandError if there are none.
        """
        from evaluation.submissions.mistakes import make_main_metric
        from leaderboard.board.inspect_logs import write_inspect_log

        metric = make_main_metric(task.config)
        files, names = _find_files(task), name_models(table, _find_facts(task, table))
        count = 0
        for row in table["rows"]:
            model = names[row["id"]]
            for run in _find_public_runs(task, files.get(row["id"], (row["id"],))):
                name = run.version.evaluation_set.name
                cells = row["sets"].get(name)
                # A set that a newer version has replaced on the board has no cells.
                if metric is None or not cells:
                    continue
                path = output / model.path / f"{task.code}_{name}_v{run.version.version}.eval"
                write_inspect_log(path, task.config, run, metric, model=model.id, cells=cells)
                count += 1
        if not count:
            raise CommandError("No model has answers on a set with published labels.")
        return f"{count} logs are in {{output}}: inspect view --log-dir {{output}}"

    def _write_solutions(
        self, task: Task, table: Mapping[str, Any], address: str, output: Path
    ) -> int:
        """Write the sets as problems and each model's solutions; return the number of models."""
        for name, problem in build_problems(task.config, table, address):
            _write_json(output / "problems" / f"{name}.jsonld", problem)
        count = 0
        for path, solutions in build_solutions(table, address, _find_facts(task, table)):
            _write_json(output / "solutions" / f"{path}.jsonld", solutions)
            count += 1
        return count

    def _write_for_hub(
        self,
        task: Task,
        table: Mapping[str, Any],
        address: str,
        output: Path,
        datasets: Sequence[str],
    ) -> str:
        """Write the files that owners can add to their models on the Hub.

        Returns a sentence as `_write` does. Raises CommandError if there are none.
        """
        benchmarks = _find_benchmarks(task, datasets)
        facts, count = _find_facts(task, table), 0
        category = task.config.get_component(task.config.answer_field).kind.hub_category
        for row in table["rows"]:
            model_facts = facts.get(row["id"])
            if model_facts is None or not model_facts.repository:
                continue
            results = write_eval_results(table, row, benchmarks, address)
            if not results:
                continue
            folder = output / model_facts.repository
            # Somebody submitted it again, such as with another prompt: the best result counts.
            if folder.exists():
                continue
            _write_lines(folder / ".eval_results" / f"dynabench-{task.code}.yaml", [results])
            index = write_model_index(table, row, benchmarks, category, address)
            _write_lines(folder / "model-index.yml", [index])
            count += 1
        if not count:
            raise CommandError("No model of the hub has a result on these rounds.")
        left_out_count = len(table["rows"]) - count
        return (
            f"{count} models are in {{output}}. {left_out_count} others are not of the hub, have "
            "no result on these rounds, or were submitted more than once."
        )

    def _add_answers(
        self,
        task: Task,
        record: dict[str, Any],
        runs: Sequence[EvaluationRun],
        path: Path,
        shown_path: Path,
    ) -> dict[str, Any]:
        """Write the answers of runs with published labels; return the record that names the file.

        path: where the file is written. shown_path: how the record names it.
        """
        from evaluation.submissions.mistakes import make_main_metric
        from leaderboard.board.answer_records import yield_answer_records

        metric = make_main_metric(task.config)
        if not runs or metric is None:
            return record
        digest, rows = hashlib.sha256(), 0

        def write_lines() -> Iterable[str]:
            nonlocal rows
            for run in runs:
                for answer in yield_answer_records(task.config, run, metric, record):
                    line = json.dumps(answer, ensure_ascii=False) + "\n"
                    digest.update(line.encode())
                    rows += 1
                    yield line

        _write_lines(path, write_lines())
        answers = {
            "format": "jsonl",
            "file_path": shown_path.as_posix(),
            "hash_algorithm": "sha256",
            "checksum": digest.hexdigest(),
            "total_rows": rows,
        }
        return {**record, "detailed_evaluation_results": answers}


@contextmanager
def _open_scratch_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty folder inside of `folder`, which is made if it is missing.

    It is deleted afterwards, with a new `folder` if that is still empty. Raises OSError.
    """
    is_new = not folder.exists()
    # Inside, because a mounted folder is a disk of its own, from which nothing can be renamed.
    scratch = folder / SCRATCH_NAME
    # A stopped export left it.
    rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    try:
        yield scratch
    finally:
        rmtree(scratch, ignore_errors=True)
        if is_new:
            with suppress(OSError):  # it has files
                folder.rmdir()


def _move_files(scratch: Path, folder: Path) -> None:
    """Move all files into the folder, where they replace those of an earlier export.

    Raises CommandError if the folder has other files, which would seem to be exported too.
    """
    names = {path.relative_to(scratch) for path in scratch.rglob("*") if path.is_file()}
    former_names = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    former_names -= {Path(SCRATCH_NAME, name) for name in names}
    # Such as those of a model that has been withdrawn since then.
    if other_names := former_names - names:
        raise CommandError(
            f"{folder} has other files, such as {min(other_names)}. Use an empty folder."
        )
    for name in sorted(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (scratch / name).replace(folder / name)


def _read_table(task: Task, number: int | None) -> tuple[Mapping[str, Any], str]:
    """Return the table of the board or a snapshot, and its URL. Raises CommandError."""
    from leaderboard.board.tables import build_public_table

    if number is None:
        path = reverse("leaderboard:board", args=[task.code])
        return build_public_table(task), f"{settings.SITE_URL}{path}"
    snapshot = task.snapshots.filter(number=number).first()
    if snapshot is None:
        raise CommandError(f"{task.code} has no snapshot {number}.")
    path = reverse("leaderboard:snapshot", args=[task.code, number])
    return snapshot.table, f"{settings.SITE_URL}{path}"


def _find_benchmarks(task: Task, pairs: Sequence[str]) -> dict[str, HubBenchmark]:
    """Return the published rounds by the names of their sets.

    pairs: a round and its repository each, such as `1=lab/nli-round1`. Raises CommandError if there
    are none, or one is invalid or has no set.
    """
    try:
        repositories = parse_benchmarks(pairs)
    except ValueError as error:
        raise CommandError(str(error)) from error
    if not repositories:
        raise CommandError("Name the dataset of each round: --dataset 1=lab/nli-round1.")
    sets = task.evaluation_sets.filter(
        source=EvaluationSet.Source.ROUND, round__number__in=repositories
    ).select_related("round")
    benchmarks = {}
    for each in sets:
        assert each.round  # because of the filter
        number = each.round.number
        task_id = f"dynabench_{task.code}_r{number}"
        benchmarks[each.name] = HubBenchmark(repositories.pop(number), task_id)
    # The rest was requested, and must not be ignored silently.
    if repositories:
        raise CommandError(f"{task.code} has no set of round {min(repositories)}.")
    return benchmarks


def _find_files(task: Task) -> dict[str, Sequence[Any]]:
    """Return the ids of the submissions of which each model consists, by the model's id."""
    from leaderboard.board.matrix import read_matrix

    return {str(model.id): model.files for model in read_matrix(task).models}


def _find_public_runs(task: Task, submissions: Sequence[Any]) -> list[EvaluationRun]:
    """Return the counting runs of a model on sets whose labels are published. One query."""
    runs = EvaluationRun.objects.filter(
        submission__in=submissions, submission__task=task, suite=EvaluationRun.Suite.PLAIN
    ).exclude(predictions="")
    related = ("version__evaluation_set", "version__dataset", "submission__task")
    counting_runs = filter_counting_runs(runs).select_related(*related).order_by("version")
    return [run for run in counting_runs if run.is_shown and publishes_labels(run.version)]


def _find_facts(task: Task, table: Mapping[str, Any]) -> dict[str, ModelFacts]:
    """Return facts about the table's models, by id. Anonymous models are left out."""
    facts = {}
    ids = [row["id"] for row in table["rows"]]
    for model in Submission.objects.filter(task=task, pk__in=ids):
        # The Hub's id would name its author.
        if model.is_anonymous:
            continue
        repository = model.source if model.kind == "hub" else ""
        is_remote = KINDS[model.kind].is_remote
        facts[str(model.pk)] = ModelFacts(repository, is_served_elsewhere=is_remote)
    return facts


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    _write_lines(path, [json.dumps(value, ensure_ascii=False, indent=2) + "\n"])


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(lines)
