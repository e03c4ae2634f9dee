"""Temporary folders: away at the end, kept while their process lives, found when it was killed."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from core.files.storage import disk as module
from core.files.storage.disk import open_scratch_folder, remove_abandoned_folders

HOLD = """
import time
import django
django.setup()
from core.files.storage.disk import open_scratch_folder
with open_scratch_folder() as folder:
    (folder / "large").write_text("x")
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _own_place(settings, tmp_path, monkeypatch):
    settings.SPOOL = tmp_path / "spool"
    settings.SPOOL.mkdir()
    monkeypatch.setattr(module, "MIN_AGE_SECONDS", 0.0)


def test_a_folder_goes_at_the_end():
    with open_scratch_folder() as folder:
        (folder / "x").touch()
    assert not folder.exists()


def test_what_a_killed_process_left_is_taken_away(settings, tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "DYNABENCH_HOME": str(tmp_path)},
    ) as process:
        folder = Path(process.stdout.readline().strip())
        assert (remove_abandoned_folders(), folder.exists()) == (0, True)
        process.kill()
        process.wait()
    assert (remove_abandoned_folders(), folder.exists()) == (1, False)


def test_a_folder_just_made_is_left_alone(settings, monkeypatch):
    monkeypatch.setattr(module, "MIN_AGE_SECONDS", 60.0)
    (settings.SPOOL / "new").mkdir()
    assert remove_abandoned_folders() == 0


def test_old_files_of_forms_go(settings):
    old, new = settings.SPOOL / "old.upload", settings.SPOOL / "new.upload"
    old.touch()
    new.touch()
    hours_ago = time.time() - 2 * 3600
    os.utime(old, (hours_ago, hours_ago))
    assert remove_abandoned_folders() == 1
    assert (old.exists(), new.exists()) == (False, True)
