"""Write what makes a release a benchmark on the Hugging Face Hub: `eval.yaml` and its questions.

Inspect runs such a dataset without our code: `inspect eval hf/<repository>`. Each question is the
prompt that the shipped tasks show, and its answer is compared as text.
"""

import json
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from evaluation.dataset_releases.exporters.dynabench_task import iterate_examples

QUESTIONS_FILE, BENCHMARK_FILE = "eval.parquet", "eval.yaml"
CONFIG_NAME = "eval"
"""The configuration of the dataset that has the questions."""
HUB_SPLIT = "test"
ROWS_AT_ONCE = 1000


def write_benchmark(
    folder: Path, tasks: Mapping[str, str], *, split: str, title: str, description: str
) -> bool:
    """Write `eval.yaml` and its questions, if the split has any; return whether they were written.

    folder: contains the split's JSON lines; `task.json` is also written to it. tasks: the files of
    `make_task_files`.
    """
    if "task.json" not in tasks:
        return False
    (folder / "task.json").write_text(tasks["task.json"])  # which `iterate_examples` reads
    task_info = json.loads(tasks["task.json"])
    if not _write_questions(folder, split, task_info):
        return False
    benchmark = _make_benchmark(task_info, title, description)
    text = yaml.safe_dump(benchmark, sort_keys=False, allow_unicode=True)
    (folder / BENCHMARK_FILE).write_text(text, encoding="utf-8")
    return True


def _write_questions(folder: Path, split: str, task_info: Mapping[str, Any]) -> bool:
    """Write the questions as Parquet, like the release's rows; return whether there are any.

    `datasets` reads all configurations of a folder as files of one format.
    """
    import pyarrow as pa  # not in the web process
    import pyarrow.parquet as pq

    text_type = pa.string()
    schema = pa.schema(
        {
            "id": text_type,
            "prompt": text_type,
            "target": text_type,
            "choices": pa.list_(text_type),
        }.items()
    )
    questions = iterate_examples(folder, split)
    records = (_make_record(question, task_info) for question in questions)
    batch = list(islice(records, ROWS_AT_ONCE))
    if not batch:
        return False
    with pq.ParquetWriter(folder / QUESTIONS_FILE, schema) as writer:
        while batch:
            writer.write_table(pa.Table.from_pylist(batch, schema))
            batch = list(islice(records, ROWS_AT_ONCE))
    return True


def _make_record(question: Mapping[str, Any], task_info: Mapping[str, Any]) -> dict[str, Any]:
    labels = task_info["labels"]
    return {
        "id": question["uid"],
        "prompt": question["instructions"] + question["prompt"],
        "target": labels[question["target"]] if labels else question["target"],
        "choices": labels or [],
    }


def _make_benchmark(task_info: Mapping[str, Any], title: str, description: str) -> dict[str, Any]:
    """Return the contents of `eval.yaml`, in the form that Inspect's own reader accepts."""
    # Quoted passages may be a word longer or shorter; labels may not.
    scorer = "exact" if task_info["labels"] else "f1"
    return {
        "name": title,
        "description": description or title,
        "evaluation_framework": "inspect-ai",
        "tasks": [
            {
                "id": task_info["name"],
                "config": CONFIG_NAME,
                "split": HUB_SPLIT,
                "field_spec": {"input": "prompt", "target": "target", "id": "id"},
                "solvers": [{"name": "generate"}],
                "scorers": [{"name": scorer}],
            }
        ],
    }
