"""A released version is published: whole, public files alone, and again after a stop."""

# ruff: noqa: F811  (fixtures are named where they are used)

import hashlib

import pytest
from django.core.management import CommandError, call_command

from evaluation.dataset_releases.publishing import files
from tests.support.releases import _own_storage, closed, people, released  # noqa: F401


def published(folder, **options):
    call_command("publish", "nli", 1, output=folder, **options)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_folder_has_the_whole_release(closed, tmp_path):
    dataset = released(closed)
    found = published(tmp_path / "out")
    assert {name: hashlib.sha256(data).hexdigest() for name, data in found.items()} == dict(
        dataset.files.values_list("name", "sha256")
    )
    assert {"README.md", "croissant.json", "eval.yaml", "SHA256SUMS"} <= found.keys()
    (tmp_path / "out" / "README.md").write_text("Something else.")
    assert published(tmp_path / "out") == found


def test_private_labels_stay(closed, tmp_path):
    released(closed, private_test=True)
    found = published(tmp_path / "out")
    assert not found.keys() & {"test.jsonl", "test.parquet"}
    assert "test-unlabelled.jsonl" in found


def test_a_stopped_run_leaves_no_half_file_and_is_gone_on_with(closed, tmp_path, monkeypatch):
    dataset = released(closed)
    opened = []

    def stops(file):
        opened.append(file.name)
        if len(opened) == 4:
            raise OSError("the disk is full")
        return open_file(file)

    open_file = files.open_checked_file
    monkeypatch.setattr(files, "open_checked_file", stops)
    with pytest.raises(CommandError):
        published(tmp_path / "out")
    digests = dict(dataset.files.values_list("name", "sha256"))
    half = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert len(half) == 3
    assert all(hashlib.sha256(data).hexdigest() == digests[name] for name, data in half.items())
    opened.clear()
    monkeypatch.setattr(files, "open_checked_file", open_file)
    assert published(tmp_path / "out").keys() == digests.keys()


def test_what_cannot_be_published_is_refused(closed, tmp_path):
    with pytest.raises(CommandError):
        published(tmp_path / "out")
    released(closed)
    with pytest.raises(CommandError):
        published(tmp_path / "out", of_version=2)
    assert not (tmp_path / "out").exists()
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("Mine.")
    with pytest.raises(CommandError):
        published(other)
    assert [path.name for path in other.iterdir()] == ["notes.txt"]
    with pytest.raises(CommandError):
        published(other / "notes.txt")
