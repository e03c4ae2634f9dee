"""A task's report from imported votes."""

import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection

from tasks.models import Task
from tests.support.factories import importing


def load(file, *args):
    call_command("import_examples", str(file), *importing(args), stdout=StringIO())
    if connection.vendor == "postgresql":  # as autovacuum does soon after
        connection.cursor().execute("ANALYZE")
    Task.objects.update(is_visible=True)


def report(code, *args):
    out = StringIO()
    call_command("task_report", code, *map(str, args), "--json", stdout=out)
    return json.loads(out.getvalue())


def words(code, *args):
    out = StringIO()
    call_command("task_report", code, *map(str, args), stdout=out)
    return out.getvalue()


def row(uid, votes, *, round=1, author=None, label=None, model="negative"):
    said = {"model": "m", "label": model, "probs": None}
    return {
        "task": "mood",
        "round": round,
        "uid": uid,
        "context": {},
        "input": {"text": uid},
        "author": author,
        "author_label": label,
        "model_prediction": said if model else None,
        "model_wrong": None,
        "validations": votes,
        "metadata": {},
    }


def by(*labels):
    return [{"worker": f"w{n}", "label": label} for n, label in enumerate(labels)]


@pytest.fixture
def mood(db, tmp_path):
    """Two rounds by hand: see the comments for what each row is."""
    p, n = "positive", "negative"
    rows = [
        row("a1", by(p, p, p), author="a", label=p),  # fooled, verified
        row("a2", by(n, n, n), author="a", label=p),  # fooled, others disagree
        row("a3", by(n, n, n), author="a", label=n),  # the model is right
        row("b1", by(p, n, n), author="b", label=p),  # fooled, without consensus
        row("b2", [], author="b", label=p),  # fooled, not judged
        row("c1", by(p, p, p), round=2),  # consensus against the model
        row("c2", [{"worker": None, "label": p}] * 2, round=2, model=None),  # no model
    ]
    file = tmp_path / "mood.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    load(file, "--create", "--policy", "at-least:3")
    return "mood"
