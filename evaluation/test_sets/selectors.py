"""Read versions of evaluation sets, and stream their examples."""

import gzip
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import orjson
from django.db.models import Exists, OuterRef, QuerySet

from evaluation.contract import SetRow
from evaluation.models import EvaluationSet, EvaluationSetVersion, WholeRoundScore
from tasks.models import Task


def find_latest_version(evaluation_set: EvaluationSet) -> EvaluationSetVersion | None:
    """Return the newest version of a set, or None."""
    return evaluation_set.versions.order_by("-version").first()


def select_newest_versions(task: Task) -> QuerySet[EvaluationSetVersion]:
    """Select the newest version of each of a task's evaluation sets."""
    # A subquery instead of `distinct on`, which SQLite lacks.
    later_versions = EvaluationSetVersion.objects.filter(
        evaluation_set=OuterRef("evaluation_set"), version__gt=OuterRef("version")
    )
    versions = EvaluationSetVersion.objects.filter(
        ~Exists(later_versions), evaluation_set__task=task
    )
    return versions.select_related("evaluation_set")


def find_estimated_ids(versions: Iterable[EvaluationSetVersion]) -> set[int]:
    """Return the ids of the versions on which a model's score on the whole round is estimated.

    One query, or none if people judged all of each round.
    """
    ids = [version.pk for version in versions if version.is_whole_round]
    if not ids:
        return set()
    scores = WholeRoundScore.objects.filter(run__version__in=ids)
    return set(scores.values_list("run__version", flat=True).distinct())


def select_open_versions(task: Task) -> QuerySet[EvaluationSetVersion]:
    """Select the newest version of each set that is not hidden and has downloadable inputs."""
    # Hidden sets are left out, even if their inputs may leave.
    versions = select_newest_versions(task).filter(evaluation_set__may_leave=True)
    return versions.exclude(evaluation_set__access=EvaluationSet.Access.HIDDEN)


def read_input_rows(version: EvaluationSetVersion) -> Iterator[Mapping[str, Any]]:
    """Yield `{"uid": …, "inputs": {field: value}}` for each example in order.

    Never opens the file with the answers.
    """
    with version.inputs.open("rb") as file, gzip.GzipFile(fileobj=file) as lines:
        yield from map(orjson.loads, lines)


def describe_set_of_ids(task: Task, uids: Collection[str]) -> str:
    """Return a sentence that names the set version to which the ids belong.

    Only sets with open inputs are searched. If none contains the ids, the sentence says so.
    """
    # Only open sets are searched, because a result would reveal which ids a set contains.
    open_sets = select_open_versions(task).values("evaluation_set")
    versions = EvaluationSetVersion.objects.filter(evaluation_set__in=open_sets)
    for version in versions.select_related("evaluation_set").order_by("-pk"):
        if any(row["uid"] in uids for row in read_input_rows(version)):
            return f"They are of {version.evaluation_set.name} v{version.version}."
    return "They are of no set whose inputs may be downloaded."


def yield_input_lines(version: EvaluationSetVersion) -> Iterator[bytes]:
    """Yield the inputs in download format: JSON lines `{"id": uid, "inputs": {field: value}}`."""
    for row in read_input_rows(version):
        yield orjson.dumps({"id": row["uid"], "inputs": row["inputs"]}) + b"\n"


def read_set_rows(version: EvaluationSetVersion) -> Iterator[SetRow]:
    """Stream the examples of a version in order, with right answers and slices.

    Raises ValueError if the two stored files do not match.
    """
    with version.gold.open("rb") as file, gzip.GzipFile(fileobj=file) as lines:
        for question, answer in zip(
            read_input_rows(version), map(orjson.loads, lines), strict=True
        ):
            # Both files are written together, so the storage must be damaged.
            if question["uid"] != answer["uid"]:
                raise ValueError(f"{version}: the files differ at {question['uid']}.")
            slices = {name: tuple(values) for name, values in answer["slices"].items()}
            gold, criteria = tuple(answer["gold"]), tuple(answer.get("criteria", ()))
            yield SetRow(question["uid"], question["inputs"], gold, slices, criteria)


def read_checked_paraphrases(version: EvaluationSetVersion) -> dict[str, dict[str, str]]:
    """Return the checked paraphrases of a version as {uid: {field: new text}}. One query."""
    return dict(version.paraphrases.values_list("uid", "fields"))
