"""A million equal lines kept a web process busy for 40 seconds: reading now ends early."""

import json
import pickle

import pytest

from evaluation.test_sets import parsing
from evaluation.test_sets.parsing import SetFile
from tasks import line_files
from tasks.contexts import files
from tasks.contexts.files import summarise_file
from tasks.line_files import FileError, TooManyBadLines
from tests.support.factories import RoundFactory, TaskFactory

SAME = b'{"premise": "the same"}\n'
KINDS = {
    "equal": SAME,
    "wrong": b'{"unknown": 1}\n',
    "no JSON": b"{\n",
}


@pytest.fixture
def few(monkeypatch):
    """A small number of problems ends it, as 50,000 do."""
    for module in (line_files, files, parsing):
        monkeypatch.setattr(module, "MAX_PROBLEMS", 100)


class Lines:
    """Counts the lines that are read."""

    def __init__(self, line, count):
        self.line, self.left = line, count

    def __iter__(self):
        while self.left:
            self.left -= 1
            yield self.line


@pytest.fixture
def task(db):
    return TaskFactory()


@pytest.mark.parametrize("line", KINDS.values(), ids=KINDS)
def test_contexts_stop_after_many_problems(line, few, task, monkeypatch):
    lines = Lines(line, 10_000)
    monkeypatch.setattr(files, "BytesIO", lambda data: lines)
    with pytest.raises(TooManyBadLines) as stopped:
        summarise_file(b"", "a.jsonl", task.config, ())
    assert lines.left > 9_800
    assert pickle.loads(pickle.dumps(stopped.value)).args == stopped.value.args
    assert stopped.value.args[0] in (100, 101)


def test_one_line_fewer_is_read_to_its_end(few, task):
    assert summarise_file(SAME * 100, "a.jsonl", task.config, ()).duplicate_count == 99


def test_a_dry_run_answers_what_stopped_it(few, task, as_alice, alice):
    task.members.create(user=alice, role="owner")
    RoundFactory(task=task)
    asked = {"format": "jsonl", "text": (SAME * 200).decode(), "dry_run": True}
    answer = as_alice.post(
        f"/api/v1/tasks/{task.code}/rounds/1/contexts/",
        json.dumps(asked),
        content_type="application/json",
    )
    assert answer.status_code == 422
    assert "text" in answer.json()["error"]["fields"]


def test_sets_stop_though_wrong_lines_are_left_out(few, task, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"{\n" * 10_000)
    with pytest.raises(TooManyBadLines):
        list(SetFile(path, "a.jsonl", task.config, skip_bad=True))
    assert issubclass(TooManyBadLines, FileError)
