"""manage.py import_contexts, and what it shares with the admin: storing and undoing."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Assignment
from core.accounts.models import LogEntry
from core.accounts.services import get_annotator
from core.errors import Refused
from tasks.contexts.services import import_contexts, preview_contexts, undo_import
from tasks.models import Context, ContextBatch, Round
from tasks.services import OFFICIAL_FOLDER
from tests.support.factories import RoundFactory


def run(*args):
    """What the command said: (stdout, stderr)."""
    out, err = StringIO(), StringIO()
    call_command("import_contexts", *map(str, args), stdout=out, stderr=err)
    return out.getvalue().strip(), err.getvalue().strip()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "new.jsonl"
    rows = [{"premise": "The tram stops here.", "tag": "city"}, {"premise": "Snow fell at noon."}]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_new_contexts_are_stored_once(nli, file):
    assert run("nli", file)[0] == "nli round 1: 2 new, 0 duplicates."
    stored = nli.contexts.get(tag="city")
    assert stored.fields == {"premise": "The tram stops here."}
    assert run("nli", file)[0] == "nli round 1: 0 new, 2 duplicates."
    assert nli.contexts.count() == 5
    assert ContextBatch.objects.count() == 1


def test_an_official_file_is_accepted_unchanged(nli):
    path = OFFICIAL_FOLDER / "nli" / "contexts.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    run("nli", path)
    imported = Context.objects.filter(batch__isnull=False)
    assert imported.count() == len(rows)
    last = imported.order_by("pk").last()
    assert (last.tag, last.metadata) == (rows[-1]["tag"], rows[-1]["metadata"])


def test_a_bad_line_stops_everything_and_is_named(nli, file, capsys):
    file.write_text(file.read_text() + '\n{"premises": "x"}\n')
    err = StringIO()
    with pytest.raises(CommandError, match="1 bad line"):
        call_command("import_contexts", "nli", str(file), stderr=err)
    assert err.getvalue().startswith(f"{file}:3: ")
    assert nli.contexts.count() == 3


def test_bad_lines_can_be_left_out(nli, file):
    file.write_text(file.read_text() + '\n{"premises": "x"}\n')
    out, err = run("nli", file, "--skip-bad")
    assert out.startswith("nli round 1: 2 new, 0 duplicates, 1 ")
    assert f"{file}:3: " in err


def test_the_latest_unfinished_round_is_meant(nli, file):
    RoundFactory(task=nli.task, number=2, state="draft")
    RoundFactory(task=nli.task, number=3, state="closed")
    assert run("nli", file)[0].startswith("nli round 2: 2 new")
    assert run("nli", file, "--round", 1)[0].startswith("nli round 1: 2 new")
    with pytest.raises(CommandError, match="Round 3"):
        run("nli", file, "--round", 3)


def test_errors_name_what_there_is(nli, file, tmp_path):
    with pytest.raises(CommandError, match="Tasks: nli"):
        run("nil", file)
    with pytest.raises(CommandError, match=r"no round 7. Rounds: 1 \(open\)"):
        run("nli", file, "--round", 7)
    with pytest.raises(CommandError, match="No such file"):
        run("nli", tmp_path / "none.jsonl")


def imported(round, file, actor):
    """The batch of the file's contexts."""
    with file.open("rb") as lines:
        found = preview_contexts(round=round, lines=lines, file_name=file.name)
    import_contexts(round=round, summary=found, file_name=file.name, actor=actor)
    return ContextBatch.objects.get()


def test_an_unused_batch_can_be_undone(nli, file, alice):
    batch = imported(nli, file, alice)
    assert undo_import(batch=batch, actor=alice) == 2
    assert nli.contexts.count() == 3
    assert not ContextBatch.objects.exists()
    entry = LogEntry.objects.get(action="contexts.undone")
    assert (entry.actor, entry.data) == (alice, {"file": "new.jsonl", "rows": 2})


def test_a_used_batch_stays(nli, file, alice):
    batch = imported(nli, file, alice)
    context = Context.objects.filter(batch=batch).first()
    Assignment.objects.create(annotator=get_annotator(alice), round=nli, context=context)
    with pytest.raises(Refused) as refused:
        undo_import(batch=batch, actor=alice)
    assert refused.value.code == "used"
    assert Round.objects.get().contexts.count() == 5


def labelled(path, *data, annotations=()):
    tasks = [{"id": n, "data": one, "annotations": [*annotations]} for n, one in enumerate(data)]
    path.write_text(json.dumps(tasks))
    return str(path), "--from", "label_studio"


def test_columns_of_a_tools_file_are_matched_as_the_message_says(nli, tmp_path):
    given = labelled(tmp_path / "a.json", {"Satz (de)": "Eins.", "Quelle": "a"})
    with pytest.raises(CommandError, match="--columns"):
        call_command("import_contexts", "nli", *given)
    call_command("import_contexts", "nli", *given, "--columns", "premise=Satz (de)")
    assert Context.objects.filter(fields={"premise": "Eins."}).count() == 1
    with pytest.raises(CommandError, match="no column Satz"):
        call_command("import_contexts", "nli", *given, "--columns", "premise=Satz")


def test_a_record_of_a_tool_that_cannot_be_read_is_named(nli, tmp_path):
    given = labelled(tmp_path / "a.json", {"premise": "Eins."}, annotations=[3])
    with pytest.raises(CommandError, match="annotations"):
        call_command("import_contexts", "nli", *given)


def test_whatever_people_answered_in_a_tool_its_texts_are_contexts(nli, tmp_path):
    spans = {"from_name": "ner", "type": "labels", "value": {"labels": ["PER"]}}
    choice = {"from_name": "tone", "type": "choices", "value": {"choices": ["a", "b"]}}
    annotations = [{"completed_by": 1, "result": [spans, choice]}]
    task = {"id": 1, "data": {"premise": "Snow fell at noon."}, "annotations": annotations}
    path = tmp_path / "a.json"
    path.write_text(json.dumps([task]))
    assert run("nli", path, "--from", "label_studio")[0] == "nli round 1: 1 new, 0 duplicates."
