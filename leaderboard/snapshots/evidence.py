"""The raw answers behind a snapshot, from which a stranger recomputes its cells.

Only sets whose labels a release has published have any: those of sealed sets stay secret.
"""

import gzip
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from evaluation.kinds import KINDS
from evaluation.models import EvaluationRun, EvaluationSetVersion, Submission
from evaluation.runs.selectors import filter_counting_runs
from evaluation.submissions.visibility import publishes_labels
from evaluation.test_sets.selectors import read_set_rows
from leaderboard.models import Snapshot
from leaderboard.snapshots.judged import JudgedReader

Suite = EvaluationRun.Suite


class SetEvidence(NamedTuple):
    """A set of a snapshot. version: None if its labels or the set are not public."""

    name: str
    number: int
    version: EvaluationSetVersion | None


def list_evidence(snapshot: Snapshot) -> list[SetEvidence]:
    """Return the sets of a snapshot in its order. Two queries."""
    board_sets = snapshot.table.get("sets", [])  # an arena has none
    versions = EvaluationSetVersion.objects.filter(
        evaluation_set__task=snapshot.task_id,
        evaluation_set__name__in=[each["name"] for each in board_sets],
    ).select_related("evaluation_set__task", "dataset")
    by_name = {(each.evaluation_set.name, each.version): each for each in versions}
    evidence = []
    for board_set in board_sets:
        # A set that has been deleted or renamed no longer has a version.
        version = by_name.get((board_set["name"], board_set["version"]))
        # Checked now, not when the snapshot was taken, because owners may withdraw a release.
        if version is not None and not publishes_labels(version):
            version = None
        evidence.append(SetEvidence(board_set["name"], board_set["version"], version))
    return evidence


def iterate_label_lines(version: EvaluationSetVersion) -> Iterator[bytes]:
    """Yield a set's examples as lines `{"id", "inputs", "gold", "slices"}`, in the set's order."""
    for row in read_set_rows(version):
        line: dict[str, Any] = {"id": row.uid, "inputs": row.inputs}
        line |= {"gold": row.gold, "slices": row.slices}
        # The digest of such a set is of its criteria, too.
        if row.criteria:
            line["criteria"] = row.criteria
        yield orjson.dumps(line) + b"\n"


def iterate_answer_lines(snapshot: Snapshot, version: EvaluationSetVersion) -> Iterator[bytes]:
    """Yield the answers of the snapshot's models on a set, one model after the other.

    For each model a line `{"model", "seed", "answers", "measurements", "judged"}`, then as many
    lines `{"id", "answer"}`. measurements: see `evaluation.scoring.measured`. judged: what the
    board's judge and the owners' own metrics said of each answer, by column.
    """
    judged_reader = JudgedReader(snapshot)
    for model_id, [run] in _find_runs(snapshot, version, [Suite.PLAIN]):
        header = {"model": model_id, "seed": run.seed, "answers": version.size}
        header |= {"measurements": run.measurements, "judged": judged_reader.read(run)}
        yield orjson.dumps(header) + b"\n"
        with run.predictions.open("rb") as file, gzip.GzipFile(fileobj=file) as lines:
            for line in map(orjson.loads, lines):
                yield orjson.dumps({"id": line["uid"], "answer": line["answer"]}) + b"\n"


def iterate_perturbed_lines(snapshot: Snapshot, version: EvaluationSetVersion) -> Iterator[bytes]:
    """Yield the models' answers to the perturbed examples of a set, one model after the other.

    For each model and suite a line `{"model", "suite", "seed", "examples"}`, then as many lines
    `{"id", "answers": [[kind, answer], …]}`, whose ids are those of the unperturbed examples.
    """
    suites = [Suite.ROBUSTNESS, Suite.FAIRNESS]
    for model_id, runs in _find_runs(snapshot, version, suites):
        for run in runs:
            lines = []
            with run.predictions.open("rb") as file, gzip.GzipFile(fileobj=file) as stored_lines:
                # Stored with the variants of an example one after the other.
                rows = map(orjson.loads, stored_lines)
                for uid, variants in groupby(rows, key=lambda row: row["uid"]):
                    answers = [(variant["kind"], variant["answer"]) for variant in variants]
                    lines.append(orjson.dumps({"id": uid, "answers": answers}) + b"\n")
            header = {"model": model_id, "suite": run.suite, "seed": run.seed}
            yield orjson.dumps({**header, "examples": len(lines)}) + b"\n"
            yield from lines


def _find_runs(
    snapshot: Snapshot, version: EvaluationSetVersion, suites: Sequence[str]
) -> list[tuple[str, list[EvaluationRun]]]:
    """Return each model's id in the snapshot with its runs of these suites on the set. Two queries.

    Runs that ended after the snapshot, and those whose results are not shown, are left out.
    """
    model_ids = _find_model_ids(snapshot)
    runs = EvaluationRun.objects.filter(
        submission__in=model_ids,
        version=version,
        suite__in=suites,
        is_shown=True,
        finished_at__lte=snapshot.made_at,
    ).exclude(predictions="")
    runs_by_model: dict[str, dict[str, EvaluationRun]] = {}
    for run in filter_counting_runs(runs).select_related("version").order_by("suite", "pk"):
        runs_by_model.setdefault(model_ids[run.submission_id], {})[run.suite] = run
    # In the order of the board, which the reader sees.
    found_runs = []
    for row in snapshot.table["rows"]:
        # Withdrawn models stay in the table, without their answers.
        if row["id"] in runs_by_model:
            found_runs.append((row["id"], list(runs_by_model[row["id"]].values())))
    return found_runs


def _find_model_ids(snapshot: Snapshot) -> dict[UUID, str]:
    """Return the ids of a snapshot's models by the submissions that make them up. One query.

    Withdrawn submissions are left out.
    """
    row_ids = {row["id"] for row in snapshot.table["rows"]}
    submissions = Submission.objects.filter(task=snapshot.task_id, withdrawn_at=None)
    rows = list(submissions.values_list("pk", "kind", "owner", "team", "name"))
    # Uploaded predictions have a file for each set, so several submissions are one model.
    ids_by_file: dict[tuple[Any, ...], str] = {}
    for pk, kind, *identity in rows:
        if str(pk) in row_ids and KINDS[kind].is_file_of_answers:
            ids_by_file[kind, *identity] = str(pk)
    model_ids = {}
    for pk, kind, *identity in rows:
        model_id = ids_by_file.get((kind, *identity))
        if str(pk) in row_ids:
            model_id = str(pk)
        if model_id is not None:
            model_ids[pk] = model_id
    return model_ids
