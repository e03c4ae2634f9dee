"""What a metric of a task's owners may give, and what is refused; the script in this process."""

import json

import pytest

from evaluation.contract import Outcome
from evaluation.isolation.sandbox import metric_script
from evaluation.judges.custom_metrics.running import (
    FAILURE_MESSAGES,
    AnswerToScore,
    MetricFailed,
    NotNow,
    score_answers,
)
from evaluation.scoring.bootstrap import compute_mean_number
from tests.support.custom_metrics import InProcess

ROWS = [AnswerToScore(["a", "b"], said, {"text": f"The text {said}."}) for said in "abcd"]


def score_of(body, rows=ROWS, tmp_path=None, runner=None, head="def score(gold, answer, example):"):
    runner = runner or InProcess()
    return score_answers(
        f"{head}\n    {body}\n", rows, tmp_path, lambda model: runner, lambda: None
    )


def test_a_number_of_each_answer_whatever_the_order(tmp_path):
    runner = InProcess()
    found = score_of("return answer in gold and 1 / len(gold)", ROWS, tmp_path, runner)
    assert found.values == [0.5, 0.5, 0.0, 0.0]
    first, second = ([json.loads(line) for line in text.splitlines()] for text in runner.read)
    assert first == [row._asdict() for row in ROWS]
    assert second != first
    assert sorted(row["answer"] for row in second) == list("abcd")


@pytest.mark.parametrize(
    ("body", "reason", "line"),
    [
        ("return 1 / 0", "error", 2),
        ("return float('nan')", "error", None),
        ("return 1.5", "error", None),
        ("return 'one'", "error", None),
        ("raise SystemExit", "error", 2),
        ("return 1 +", "error", 2),
        ("print('hello'); return 1", "output", None),
        ("score.n = getattr(score, 'n', 0) + 1; return 1 / score.n", "impure", None),
    ],
)
def test_whatever_else_a_file_does_gives_no_number(tmp_path, body, reason, line):
    with pytest.raises(MetricFailed) as failed:
        score_of(body, ROWS, tmp_path)
    assert (failed.value.reason, failed.value.line) == (reason, line)


def test_a_file_without_the_function_and_nothing_to_score(tmp_path):
    with pytest.raises(MetricFailed, match=FAILURE_MESSAGES["error"]) as failed:
        score_of("pass", ROWS, tmp_path, head="def scores():")
    assert failed.value.detail == f"TypeError: {metric_script.NO_FUNCTION_MESSAGE}"
    with pytest.raises(MetricFailed, match=FAILURE_MESSAGES["no_examples"]):
        score_of("return 1", [])
    with pytest.raises(MetricFailed, match=FAILURE_MESSAGES["too_many"]):
        score_of("return 1", ROWS * 25_001)


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (Outcome.TIMEOUT, "timeout"),
        (Outcome.OOM, "memory"),
        (Outcome.OUTPUT_TOO_LARGE, "output"),
        (Outcome.MODEL_ERROR, "length"),
    ],
)
def test_an_end_before_its_time_gives_no_number(tmp_path, outcome, reason):
    with pytest.raises(MetricFailed) as failed:
        score_of("return 1", ROWS, tmp_path, InProcess(outcome))
    assert failed.value.reason == reason


def test_a_sandbox_that_fails_is_not_the_files_fault(tmp_path):
    with pytest.raises(NotNow, match="why"):
        score_of("return 1", ROWS, tmp_path, InProcess(Outcome.INFRASTRUCTURE))


@pytest.mark.parametrize(
    "more",
    [b'{"value": 1}', b'{"error": "late", "line": 1}', b'{"value": NaN}', b"[1]", b'{"line": 1}'],
)
def test_lines_that_only_a_stranger_writes_are_refused(tmp_path, more):
    with pytest.raises(MetricFailed) as failed:
        score_of("return 1", ROWS, tmp_path, InProcess(more=more))
    assert failed.value.reason == "output"


def test_two_answers_are_turned_round(tmp_path):
    runner = InProcess()
    score_of("return 1", ROWS[:2], tmp_path, runner)
    assert runner.read[0] != runner.read[1]


def test_the_mean_has_the_houses_interval():
    found = compute_mean_number([0.0, 0.25, 0.5, 1.0] * 50, name="custom:half:1")
    assert found.value == 0.4375
    assert 0.35 < found.low < found.value < found.high < 0.53
    assert (found.n, found) == (
        200,
        compute_mean_number([1.0, 0.5, 0.25, 0.0] * 50, name=found.metric),
    )
