"""Metrics of a task's owners in the real sandbox: what they are given, and how each is ended."""

from dataclasses import replace

import pytest

from evaluation.isolation.sandbox.containers import DockerRunner
from evaluation.judges.custom_metrics import running
from evaluation.judges.custom_metrics.running import AnswerToScore, MetricFailed, score_answers

ROWS = [AnswerToScore(["yes"], said, {"text": said}) for said in ("yes", "no", "yes")]
GOOD = """
import collections, os, re
def score(gold, answer, example):
    assert os.environ["HOME"] == "/tmp" and not os.access("/", os.W_OK)
    return len(re.findall(answer, gold[0]))
"""
BAD = {
    "while True: pass": ("timeout", None),
    "while True: print('x' * 1000)": ("output", None),
    "import socket; socket.create_connection(('1.1.1.1', 53), 2)": ("error", 2),
    "import uuid; return uuid.uuid4().int / 2 ** 128": ("impure", None),
    "import sys; sys.modules['n'] = sys.modules.get('n', 0) + 1; return 1 / sys.modules['n']": (
        "impure",
        None,
    ),
    "return hash('a') % 2 ** 52 / 2 ** 52": ("impure", None),
    "open('/model/metric.py', 'w')": ("error", 2),
    "x = bytearray(2 ** 30); return x[5]": ("memory", None),
    "import os; os._exit(0)": ("length", None),
    "import os; os.write(1, b'{\"value\": 1}\\n' * 4); os._exit(0)": ("output", None),
}


@pytest.fixture
def score(bench, tmp_path, monkeypatch):
    def score(source):
        seconds = 2 if "while" in source else 5  # no good one is held to so little
        monkeypatch.setattr(
            running, "METRIC_LIMITS", replace(running.METRIC_LIMITS, seconds=seconds)
        )
        return score_answers(
            source, ROWS, tmp_path, lambda _: DockerRunner(bench.create_key()), lambda: None
        )

    return score


def test_a_good_one_gives_a_number_of_each_answer(score):
    assert score(GOOD).values == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(("body", "told"), BAD.items(), ids=[one[:20] for one in BAD])
def test_one_that_sleeps_floods_calls_out_or_is_not_pure_gives_none(score, body, told):
    with pytest.raises(MetricFailed) as failed:
        score(f"def score(gold, answer, example):\n    {body}\n")
    assert (failed.value.reason, failed.value.line) == told
