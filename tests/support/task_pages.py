"""Rounds on the page of a task."""

import json

import pytest

from annotation.models import Example
from tasks.models import Round
from tests.support.factories import TaskFactory
from tests.support.task_reports import by, load, row


@pytest.fixture
def rounds(db, tmp_path):
    """Three rounds of NLI, by hand; vMER 1/2, 1/4, 0/2."""
    p, n = "entailment", "neutral"
    rows = [
        row("a1", by(p, p, p), author="a", label=p, model=n),
        row("a2", by(n, n, n), author="a", label=n, model=n),
        row("b1", by(p, p, p), author="b", label=p, model=n, round=2),
        row("b2", by(p, p, n), author="b", label=n, model=n, round=2),
        row("b3", [], author="c", label=p, model=n, round=2),
        row("b4", [], author="c", label=p, model=p, round=2),
        row("c1", by(p, p, p), author="c", label=p, model=p, round=3),
        row("c2", by(p, p, p), author="c", label=p, model=p, round=3),
    ]
    TaskFactory(code="nli", name="Inference")
    file = tmp_path / "nli.jsonl"
    file.write_text("\n".join(json.dumps({**one, "task": "nli"}) for one in rows))
    load(file)
    return list(Round.objects.order_by("number"))


def one_more(round):
    context = round.contexts.first()
    Example.objects.create(round=round, context=context, inputs={}, digest="x", outcome="fooled")


class Later:
    """A thread that runs when the test says so."""

    waiting: list = []

    def __init__(self, target, args, daemon):
        self.work = lambda: target(*args)

    def start(self):
        self.waiting.append(self.work)

    @classmethod
    def run(cls):
        cls.waiting.pop()()


@pytest.fixture
def large(rounds, monkeypatch):
    """All rounds count as large; connections stay open, for the test's transaction."""
    monkeypatch.setattr("validation.statistics.cache.MIN_LARGE_ROUND_EXAMPLES", 1)
    monkeypatch.setattr("core.data.adaptive_cache.Thread", Later)
    monkeypatch.setattr("core.data.adaptive_cache.connection.close", lambda: None)
    Later.waiting.clear()
    return rounds
