"""A data set of a hub, or a folder of one, comes in by one command, to be judged or as contexts."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Example
from tasks.datasets import hub, spool
from tasks.models import ContextBatch, Task
from tests.support.factories import importing
from tests.support.hub import COMMIT, dataset_hub
from validation.models import QueueItem

PAIRS = [
    {"premise": f"Cat {n} sleeps.", "hypothesis": "It rests.", "label": n % 3} for n in range(4)
]
README = b"""---
license: cc-by-4.0
dataset_info:
  features:
  - name: label
    dtype:
      class_label:
        names: {'0': entailment, '1': neutral, '2': contradiction}
---
```
@misc{pairs}
```
"""
FILES = {"README.md": README, "dev.jsonl": "\n".join(map(json.dumps, PAIRS)).encode()}
JUDGED = ("org/pairs", "--from", "hub", "--task", "pairs", "--create", "--judge")
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def kept(tmp_path, monkeypatch):
    """Where pieces of a hub's files stay."""
    monkeypatch.setattr(spool, "PIECES_FOLDER", tmp_path / "hub")
    return tmp_path / "hub"


def run(command, *arguments):
    out = StringIO()
    call_command(command, *importing(arguments), stdout=out, stderr=StringIO())
    return out.getvalue().splitlines()[-1]


def test_rows_of_a_hub_are_judged_with_licence_and_commit(settings, kept):
    with dataset_hub(FILES) as (settings.HUB_ENDPOINT, _):
        assert run("import_examples", *JUDGED) == "4 new, 0 known before."
        assert run("import_examples", *JUDGED) == "0 new, 4 known before."
    assert not [*kept.iterdir()]
    task = Task.objects.get()
    assert {*task.config.get_component("label").values} == {
        "entailment",
        "neutral",
        "contradiction",
    }
    assert (task.config.about.license, task.config.about.citation) == ("cc-by-4.0", "@misc{pairs}")
    example = Example.objects.order_by("pk").first()
    assert example.inputs == {**PAIRS[0], "label": "entailment"}
    assert QueueItem.objects.count() == 4
    batch = ContextBatch.objects.get()
    assert batch.file_name == "org/pairs (default, validation)"
    assert batch.origin == f"{settings.HUB_ENDPOINT}/datasets/org/pairs/tree/{COMMIT}"
    assert (batch.license, batch.citation) == ("cc-by-4.0", "@misc{pairs}")


def test_rows_for_a_task_that_is_there_fill_its_contexts(settings, nli):
    columns = ("--columns", "premise=premise,hypothesis=hypothesis", "--rows", "2")
    with dataset_hub(FILES) as (settings.HUB_ENDPOINT, _):
        run("import_examples", *JUDGED[:3], "--task", "nli", "--judge", "--round", "2", *columns)
    first, _ = Example.objects.filter(round__number=2).select_related("context").order_by("pk")
    assert first.context.fields == {"premise": "Cat 0 sleeps."}
    assert first.inputs == {"hypothesis": "It rests."}


def test_contexts_come_from_a_hub_a_folder_and_a_layout(settings, nli, tmp_path):
    with dataset_hub(FILES) as (settings.HUB_ENDPOINT, _):
        said = run("import_contexts", "nli", "org/pairs", "--from", "hub", "--rows", "3")
    assert said == "nli round 1: 3 new, 0 duplicates."
    assert ContextBatch.objects.get(license="cc-by-4.0").origin.endswith(COMMIT)
    (tmp_path / "dev.jsonl").write_bytes(FILES["dev.jsonl"].replace(b"premise", b"words"))
    folder = ("import_contexts", "nli", tmp_path, "--from", "datasets")
    with pytest.raises(CommandError, match="No column fills premise; there are words, hypothesis"):
        run(*folder)
    said = run(*folder, "--columns", "premise=words")
    assert said == "nli round 1: 1 new, 3 duplicates."
    told = {"sentence1": "A man", "sentence2": "It", "pairID": "1", "captionID": "1"}
    (tmp_path / "snli.jsonl").write_text(json.dumps({**told, "annotator_labels": ["neutral"]}))
    said = run("import_contexts", "nli", tmp_path / "snli.jsonl", "--from", "snli")
    assert said == "nli round 1: 1 new, 0 duplicates."
    assert "Bowman" in ContextBatch.objects.order_by("pk").last().citation


def test_after_a_kill_the_same_command_goes_on(settings, kept, monkeypatch):
    """Half of the pieces are there; nothing of them is fetched again, and no row comes twice."""
    monkeypatch.setattr(hub, "BLOCK_BYTES", 100)
    whole = hub._HubFile._read_block

    def killed(self, number):
        if number == 2:
            raise KeyboardInterrupt
        return whole(self, number)

    with dataset_hub(FILES) as (settings.HUB_ENDPOINT, asked):
        monkeypatch.setattr(hub._HubFile, "_read_block", killed)
        with pytest.raises(KeyboardInterrupt):
            run("import_examples", *JUDGED)
        assert not Task.objects.exists()
        monkeypatch.setattr(hub._HubFile, "_read_block", whole)
        assert run("import_examples", *JUDGED) == "4 new, 0 known before."
    pieces = [span for path, span in asked if path.endswith("dev.jsonl")]
    assert len(pieces) == len({*pieces}) == -(-len(FILES["dev.jsonl"]) // 100)
    assert not [*kept.iterdir()]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("org/pairs", "--from", "hub", "--judge"), "needs --task"),
        (("org/pairs", "--from", "hub", "--task", "pairs", "--create"), "rows for --judge"),
        ((*JUDGED, "--split", "test"), "no split 'test'.*Nothing was stored"),
        ((*JUDGED, "--columns", "text"), "--columns"),
        ((*JUDGED, "--columns", "text=words"), "no column words"),
        (("a.jsonl", "--task", "pairs", "--split", "test"), "--split goes with"),
    ],
)
def test_what_does_not_go_together_is_refused(arguments, why, settings):
    with dataset_hub(FILES) as (settings.HUB_ENDPOINT, _), pytest.raises(CommandError, match=why):
        run("import_examples", *arguments)
    assert not Task.objects.exists()


@pytest.mark.own_process
def test_a_process_of_its_own_reads_a_folder(tmp_path):
    (tmp_path / "dev.jsonl").write_bytes(FILES["dev.jsonl"])
    options = ("--from", "datasets", "--task", "pairs", "--create", "--judge", "--labels", "a,b")
    assert run("import_examples", tmp_path, *options) == "4 new, 0 known before."
    with pytest.raises(CommandError):
        run("import_examples", tmp_path / "none", *options)
