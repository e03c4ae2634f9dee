"""Pictures and recordings that come in with files: archives of contexts, history, sets."""

# ruff: noqa: F811  (fixtures are named where they are used)

import json
import unicodedata
import zipfile
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from annotation.models import Example
from evaluation.test_sets.parsing import read_set
from tasks.contexts.media.services import store_media
from tasks.contexts.services import undo_import
from tasks.line_files import FileError
from tasks.models import Context, ContextBatch, Media, Round
from tests.support import media
from tests.support.picture_tasks import (
    SVG,
    animated,
    archive,
    as_program,
    coded,
    huge,
    own_storage,  # noqa: F401
    round,  # noqa: F401
    task,  # noqa: F401
)


def run(path):
    out, err = StringIO(), StringIO()
    call_command("import_contexts", "pictures", str(path), stdout=out, stderr=err)
    return out.getvalue()


@pytest.mark.parametrize("folder", ["", "my scenes/"])
def test_an_archive_brings_pictures_and_undoing_takes_them(
    task, tmp_path, folder, alice, django_capture_on_commit_callbacks
):
    round = Round.objects.create(task=task, number=1)
    rows = ("scene,scene_alt,tag", "a/1.png,A red stripe,easy", "./a/2.jpg,Blue,hard")
    table = "\n".join([*rows, "a/1.png,A red stripe,"])
    files = {
        "a/1.png": media.png(),
        "a/2.jpg": media.png("blue", kind="JPEG"),
        "a/3.png": b"unused",
    }
    path = archive(tmp_path, table, files, folder=folder)
    assert "2 new, 1 duplicates" in run(path)
    fields = [one.fields["scene"] for one in round.contexts.order_by("pk")]
    assert fields[0] == media.value("image")
    assert (fields[1]["mime"], fields[1]["alt"]) == ("image/jpeg", "Blue")
    assert Media.objects.filter(is_used=True).count() == 2
    assert "0 new" in run(path)
    with django_capture_on_commit_callbacks(execute=True):
        undo_import(batch=ContextBatch.objects.get(), actor=alice)
    assert not Media.objects.exists()


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("says_utf8", [True, False])
def test_names_of_an_archives_files_compare_in_any_form(task, tmp_path, form, says_utf8):
    """As macOS packs them, and as programs do that do not say that names are UTF-8."""
    round = Round.objects.create(task=task, number=1)
    named, inside = (unicodedata.normalize(one, "Bücher/é 100% #1.png") for one in ("NFC", form))
    rows = f"scene,scene_alt\n{unicodedata.normalize('NFD', named)},Red\n{named},Red\n"
    path = archive(tmp_path, rows, {inside: media.png()})
    if not says_utf8:
        data = path.read_bytes()
        for version in (b"PK\x03\x04\x14\x00", b"PK\x01\x02\x14\x03\x14\x00"):
            data = data.replace(version + b"\x00\x08", version + b"\x00\x00")
        path.write_bytes(data)
        assert inside not in zipfile.ZipFile(path).namelist()
    assert "1 new, 1 duplicates" in run(path)
    assert round.contexts.get().fields["scene"]["alt"] == "Red"


def test_a_table_of_json_lines_names_files_or_stored_ones(task, tmp_path):
    round = Round.objects.create(task=task, number=1)
    digest = store_media(task=task, kind="image", data=media.png("blue"))["digest"]
    rows = [{"scene": "1.png", "scene_alt": "Red"}, {"scene": {"digest": digest, "alt": "Blue"}}]
    table = "\n".join(map(json.dumps, rows))
    run(archive(tmp_path, table, {"1.png": media.png()}, name="scenes.jsonl"))
    assert [one.fields["scene"]["alt"] for one in round.contexts.order_by("pk")] == ["Red", "Blue"]


@pytest.mark.parametrize(
    ("table", "files", "said"),
    [
        ("scene,scene_alt\nhttps://example.com/1.png,It\n", {}, "contain the file"),
        ("scene,scene_alt\n../1.png,It\n", {}, "the file ../1.png"),
        ("scene,scene_alt\n1.png,\n", {"1.png": media.png()}, "say in words"),
        ("scene,scene_alt\n1.png,It\n", {"1.png": SVG}, "readable image"),
        ("scene,scene_alt\n1.png,It\n", {"1.png": animated("GIF")}, "animated"),
        ("scene,scene_alt\n1.png,It\n", {"1.png": huge()}, "40 megapixels"),
        ("scene,scene_alt\n1.png,It\n", {"1.png": bytes(11 * 10**6)}, "10 MB"),
    ],
)
def test_a_bad_row_of_an_archive_says_what_to_mend(task, tmp_path, table, files, said):
    Round.objects.create(task=task, number=1)
    path, err = archive(tmp_path, table, files), StringIO()
    with pytest.raises(CommandError):
        call_command("import_contexts", "pictures", str(path), stderr=err)
    assert ":2: " in err.getvalue()
    assert said in err.getvalue()
    assert not Context.objects.exists()
    assert not Media.objects.exists()


@pytest.mark.parametrize("data", [b"no archive", b"PK\x03\x04" + bytes(50)])
def test_what_is_no_archive_is_refused(task, tmp_path, data):
    Round.objects.create(task=task, number=1)
    path = tmp_path / "scenes.zip"
    path.write_bytes(data)
    with pytest.raises(CommandError):
        run(path)


def test_an_archive_holds_one_table(task, tmp_path):
    Round.objects.create(task=task, number=1)
    with pytest.raises(CommandError, match="one"):
        run(archive(tmp_path, "scene\n", {"more.csv": b"scene\n"}))


def test_a_link_is_refused_with_the_way_to_do_it(task, tmp_path):
    Round.objects.create(task=task, number=1)
    path, err = tmp_path / "links.jsonl", StringIO()
    path.write_text('{"scene": "https://example.com/1.png"}\n')
    with pytest.raises(CommandError):
        call_command("import_contexts", "pictures", str(path), stderr=err)
    assert "archive" in err.getvalue()


def test_programs_import_archives(task, tmp_path, alice):
    round = Round.objects.create(task=task, number=1)
    task.members.create(user=alice, role="editor")
    path = archive(tmp_path, "scene,scene_alt\n1.png,Red\n", {"1.png": media.png()})
    body = {"format": "zip", "text": coded(path.read_bytes())}
    tried = as_program(alice, "post", "rounds/1/contexts/", dry_run=True, **body)
    assert (tried.status_code, tried.json()["new"]) == (200, 1)
    assert not Media.objects.exists()
    made = as_program(alice, "post", "rounds/1/contexts/", **body)
    assert (made.status_code, made.json()["stored"]) == (201, 1)
    assert round.contexts.get().fields["scene"]["alt"] == "Red"


def test_history_names_only_stored_files(round, tmp_path):
    row = {
        "task": "pictures", "round": 7, "uid": "u1", "author": "w1", "metadata": {},
        "model_wrong": None, "context": {"scene": media.value("image")}, "author_label": None,
        "input": {"question": "Why?", "photo": {"digest": "0" * 64, "alt": "It"}},
        "model_prediction": None, "validations": [],
    }  # fmt: skip
    file = tmp_path / "history.jsonl"
    file.write_text(json.dumps(row))
    with pytest.raises(CommandError):
        call_command("import_examples", str(file), stdout=StringIO(), stderr=StringIO())
    assert not Example.objects.exists()


def test_a_file_of_examples_makes_no_set_of_such_a_task(task, tmp_path):
    file = tmp_path / "set.jsonl"
    file.write_text(json.dumps({"scene": "1.png", "answer": "red"}))
    with pytest.raises(FileError, match="scene"):
        list(read_set(file, file.name, task.config))
