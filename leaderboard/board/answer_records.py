"""Models' answers to single examples as rows of Every Eval Ever 0.3.0.

Only for sets whose labels a release has published: rows of other sets never leave the site. Loads
numpy.
"""

import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from evaluation.contract import Answer, SetRow
from evaluation.isolation.inference.evaluate import read_predictions
from evaluation.models import EvaluationRun
from evaluation.scoring.metrics import Metric
from evaluation.task_shape import get_labels
from evaluation.test_sets.selectors import read_set_rows
from leaderboard.board.every_eval_ever import SCHEMA_VERSION, name_result
from tasks.config.schema import TaskConfig

RIGHT = 1.0


def yield_answer_records(
    config: TaskConfig, run: EvaluationRun, metric: Metric, record: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each example of a run, in the set's order.

    record: the model's record from `every_eval_ever`. The rows refer to its results.
    """
    version = run.version
    set_name = f"{version.evaluation_set.name}-v{version.version}"
    shared = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": record["evaluation_id"],
        "model_id": record["model_info"]["id"],
        "evaluation_name": f"{run.submission.task.code}/{set_name}",
        "evaluation_result_id": name_result(record["evaluation_id"], set_name, metric.name),
    }
    with run.predictions.open("rb") as file, gzip.open(file) as lines:
        for row, answer in zip(read_set_rows(version), read_predictions(lines), strict=True):
            grade = metric.grade(metric.compute_statistic(answer and answer.value, row))
            yield {**shared, **_describe_answer(config, row, answer, grade)}


def _describe_answer(
    config: TaskConfig, row: SetRow, answer: Answer | None, grade: float
) -> dict[str, Any]:
    answer_text = "" if answer is None else write_value(answer.value)
    question = write_question(row.inputs)
    references = [write_value(gold) for gold in row.gold]
    messages = find_messages(row.inputs)
    # With the hash, others can compare answers to the same question despite different ids.
    record: dict[str, Any] = {
        "sample_id": row.uid,
        "sample_hash": hashlib.sha256((question + "".join(references)).encode()).hexdigest(),
        "interaction_type": "multi_turn" if messages else "single_turn",
        "input": {"raw": question, "reference": references},
        "answer_attribution": [
            {
                "turn_idx": len(messages),
                "source": f"messages[{len(messages)}].content" if messages else "output.raw",
                "extracted_value": answer_text,
                "extraction_method": "exact_match",
                "is_terminal": True,
            }
        ],
        "evaluation": {"score": grade, "is_correct": grade == RIGHT},
        "error": "no answer" if answer is None else None,
    }
    if labels := get_labels(config):
        record["input"]["choices"] = list(labels)
    if not messages:
        return record | {"output": {"raw": [answer_text]}, "messages": None}
    # The schema requires either an output or messages, not both.
    turns = [*messages, {"role": "assistant", "content": answer_text}]
    record["messages"] = [{"turn_idx": index, **turn} for index, turn in enumerate(turns)]
    record["evaluation"]["num_turns"] = len(turns)
    return record | {"output": None}


def find_messages(inputs: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the turns of the conversation among the inputs; empty if there is none."""
    for value in inputs.values():
        if isinstance(value, list) and value and all(_is_turn(turn) for turn in value):
            # Without the secrets that system turns may contain.
            return [{"role": turn["role"], "content": turn["text"]} for turn in value]
    return []


def _is_turn(value: Any) -> bool:
    return isinstance(value, Mapping) and {"role", "text"} <= value.keys()


def write_question(inputs: Mapping[str, Any]) -> str:
    """Return a single text as it is, and several fields as JSON."""
    # Readers compare the texts of a question, so a single one stays without quotes.
    if len(inputs) == 1:
        return write_value(next(iter(inputs.values())))
    return json.dumps(inputs, ensure_ascii=False, sort_keys=True)


def write_value(value: Any) -> str:
    """Return a text as it is, and any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
