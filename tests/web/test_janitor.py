"""The janitor: what killed processes left in the storage goes, and nothing else."""

import os
import time

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from evaluation.isolation.queue import cleanup
from evaluation.isolation.sandbox import containers
from evaluation.test_sets.selectors import read_set_rows
from tests.support.evaluations import set_version
from tests.support.factories import TaskFactory


@pytest.fixture(autouse=True)
def _here(settings, tmp_path, monkeypatch):
    settings.MEDIA_ROOT, settings.SPOOL = tmp_path / "media", tmp_path / "spool"
    settings.SPOOL.mkdir()
    monkeypatch.setattr(cleanup.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(containers, "list_own_containers", lambda installation: [])


def old(name):
    """A file of two days ago."""
    then = time.time() - 2 * cleanup.MAX_RUN_TIME.total_seconds()
    os.utime(default_storage.path(name), (then, then))
    return name


def test_set_files_that_no_version_names_go_after_a_day(db):
    assert cleanup.remove_leftovers() == 0  # no set was ever made
    version = set_version(TaskFactory(code="nli"))
    old(version.inputs.name)
    old(version.gold.name)
    folder = version.inputs.name.rpartition("/")[0]
    left = old(default_storage.save(f"{folder}/v2-inputs.jsonl.gz", ContentFile(b"x")))
    new = default_storage.save(f"{folder}/v3-inputs.jsonl.gz", ContentFile(b"x"))
    assert cleanup.remove_leftovers() == 1
    assert not default_storage.exists(left)
    assert default_storage.exists(new)  # somebody may be making its version now
    assert len(list(read_set_rows(version))) == 6


def test_folders_of_runs_go_after_a_day(db, tmp_path):
    left, new = tmp_path / "dynabench-run-left", tmp_path / "dynabench-run-new"
    left.mkdir()
    new.mkdir()
    os.utime(left, (0, 0))
    (tmp_path / "dynabench-run-gone").symlink_to(
        tmp_path / "nowhere"
    )  # gone before it is looked at
    assert cleanup.remove_leftovers() == 1
    assert new.is_dir()
    assert not left.exists()
