"""A model's answers on a set as a log of Inspect, which `inspect view` and `read_eval_log` open.

An `.eval` file is a zip archive: `header.json` with the task and its results, and a file for each
sample. Only for sets whose labels a release has published. Loads numpy.

Source of the format: https://inspect.aisi.org.uk/eval-logs.html, version 2.
"""

import gzip
import hashlib
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from core.files.whole import write_whole
from core.versions import get_version
from evaluation.contract import Answer, SetRow
from evaluation.isolation.inference.evaluate import read_predictions
from evaluation.models import EvaluationRun
from evaluation.scoring.metrics import Metric
from evaluation.task_shape import get_labels
from evaluation.test_sets.selectors import read_set_rows
from leaderboard.board.answer_records import find_messages, write_question, write_value
from tasks.config.schema import TaskConfig

LOG_VERSION = 2
EPOCH = 1
"""The number of a sample's only attempt."""
SAFE_ID_PATTERN = re.compile(r"[\w.-]{1,100}")
FIRST_TIME = (1980, 1, 1, 0, 0, 0)
"""The time of each file in an archive, so that the same run gives the same bytes."""


def write_inspect_log(
    path: Path,
    config: TaskConfig,
    run: EvaluationRun,
    metric: Metric,
    *,
    model: str,
    cells: Mapping[str, Mapping[str, float | None]],
) -> None:
    """Write a run as an `.eval` file.

    metric: grades each answer. model: how the log names the model. cells: the model's metrics on
    the set, in percent, as a board's table has them.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        write_whole(path) as unfinished_path,
        zipfile.ZipFile(unfinished_path, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        _write_member(archive, "_journal/start.json", _build_start(run, model))
        summaries = []
        for sample in _iterate_samples(config, run, metric, model):
            _write_member(archive, f"samples/{_name_sample(sample['id'])}.json", sample)
            summaries.append(_summarise(sample))
        _write_member(archive, "summaries.json", summaries)
        header = _build_start(run, model)
        header |= {
            "status": "success",
            "results": _build_results(cells, metric.name, len(summaries)),
            "stats": {
                "started_at": _format_time(run.started_at or run.queued_at),
                "completed_at": _format_time(run.finished_at or run.queued_at),
            },
        }
        _write_member(archive, "header.json", header)


def _write_member(archive: zipfile.ZipFile, name: str, value: Any) -> None:
    member = zipfile.ZipInfo(name, FIRST_TIME)
    member.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(member, json.dumps(value, ensure_ascii=False))


def _build_start(run: EvaluationRun, model: str) -> dict[str, Any]:
    """Return what a log says before its samples: the task, the dataset and the model."""
    version = run.version
    code, name = run.submission.task.code, version.evaluation_set.name
    task = f"dynabench_{code}_{name}".replace("-", "_")
    return {
        "version": LOG_VERSION,
        "eval": {
            "eval_id": run.pk.hex,
            "run_id": run.pk.hex,
            "created": _format_time(run.finished_at or run.queued_at),
            "task": task,
            "task_id": run.pk.hex,
            "task_version": version.version,
            "dataset": {"name": f"{code}/{name}", "samples": version.size, "shuffled": False},
            "model": model,
            "config": {"epochs": EPOCH},
            "packages": {"dynabench": get_version()},
            # The id by which readers know the rows of other exports.
            "metadata": {"sha256": version.sha256, "dynabench_model": str(run.submission_id)},
        },
        "plan": {"name": "plan", "steps": [], "config": {}},
    }


def _iterate_samples(
    config: TaskConfig, run: EvaluationRun, metric: Metric, model: str
) -> Iterator[dict[str, Any]]:
    """Yield a sample for each example, in the set's order."""
    with run.predictions.open("rb") as file, gzip.open(file) as lines:
        for row, answer in zip(read_set_rows(run.version), read_predictions(lines), strict=True):
            grade = metric.grade(metric.compute_statistic(answer and answer.value, row))
            yield _build_sample(config, row, answer, metric.name, grade, model)


def _build_sample(
    config: TaskConfig,
    row: SetRow,
    answer: Answer | None,
    metric: str,
    grade: float,
    model: str,
) -> dict[str, Any]:
    text = "" if answer is None else write_value(answer.value)
    messages = find_messages(row.inputs)
    if not messages:
        messages = [{"role": "user", "content": write_question(row.inputs)}]
    reply = {"role": "assistant", "content": text, "source": "generate", "model": model}
    targets = [write_value(gold) for gold in row.gold]
    sample: dict[str, Any] = {
        "id": row.uid,
        "epoch": EPOCH,
        "input": messages[0]["content"] if len(messages) == 1 else messages,
        # A single one as a text, because readers compare it with the answer.
        "target": targets[0] if len(targets) == 1 else targets,
        "messages": [*messages, reply],
        "output": {"model": model, "choices": [{"message": reply, "stop_reason": "stop"}]},
        "scores": {metric: {"value": grade, "answer": text}},
        "metadata": {"slices": {name: list(values) for name, values in row.slices.items()}},
        "store": {},
        "events": [],
        "model_usage": {},
        "attachments": {},
    }
    if labels := get_labels(config):
        sample["choices"] = list(labels)
    if answer is None:
        sample["error"] = {"message": "no answer", "traceback": "", "traceback_ansi": ""}
    return sample


def _summarise(sample: Mapping[str, Any]) -> dict[str, Any]:
    names = ("id", "epoch", "input", "target", "metadata", "scores")
    return {name: sample[name] for name in names}


def _name_sample(uid: str) -> str:
    """Return the name of a sample's file, as Inspect gives it. Odd ids give a digest."""
    # Ids come from owners' files and may contain slashes.
    if not SAFE_ID_PATTERN.fullmatch(uid):
        uid = hashlib.sha256(uid.encode()).hexdigest()
    return f"{uid}_epoch_{EPOCH}"


def _build_results(
    cells: Mapping[str, Mapping[str, float | None]], main: str, count: int
) -> dict[str, Any]:
    """Return the metrics of the whole set, as shares."""
    metrics = {}
    for name, cell in cells.items():
        if cell["value"] is not None:
            metrics[name] = {"name": name, "value": cell["value"] / 100}
    score = {"name": main, "scorer": main, "scored_samples": count, "metrics": metrics}
    return {"total_samples": count, "completed_samples": count, "scores": [score]}


def _format_time(time: datetime) -> str:
    return time.isoformat(timespec="seconds")
