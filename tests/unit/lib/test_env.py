"""The secret key: made once, whatever happens meanwhile."""

import errno
import os
import secrets
import stat
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from core import env
from core.env import EnvError, read_env_choice, read_env_secret, read_or_make_secret


def test_the_secret_is_made_once_for_its_owner_alone(tmp_path):
    path = tmp_path / "home" / "secret_key"
    made = read_or_make_secret(path)
    assert len(made) >= 50
    assert read_or_make_secret(path) == made
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["secret_key"]


def test_services_that_start_together_get_one_secret(tmp_path, monkeypatch):
    make = secrets.token_urlsafe

    def make_slowly(size):  # meanwhile the others look for the file
        time.sleep(0.2)
        return make(size)

    monkeypatch.setattr(env.secrets, "token_urlsafe", make_slowly)
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(read_or_make_secret, [tmp_path / "secret_key"] * 8))
    assert found == {read_or_make_secret(tmp_path / "secret_key")}
    assert os.listdir(tmp_path) == ["secret_key"]


def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(env.os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            read_or_make_secret(tmp_path / "secret_key")
    assert os.listdir(tmp_path) == []
    assert read_or_make_secret(tmp_path / "secret_key")


def test_an_empty_file_is_named(tmp_path, monkeypatch):
    path = tmp_path / "secret_key"
    path.touch()
    with pytest.raises(EnvError, match="secret_key is empty"):
        read_or_make_secret(path)
    monkeypatch.setenv("SECRET_KEY_FILE", str(path))
    with pytest.raises(EnvError, match="SECRET_KEY_FILE"):
        read_env_secret("SECRET_KEY")


def test_a_word_among_choices(monkeypatch):
    monkeypatch.delenv("NEW_TASKS", raising=False)
    assert read_env_choice("NEW_TASKS", "first", "second") == "first"
    monkeypatch.setenv("NEW_TASKS", "second")
    assert read_env_choice("NEW_TASKS", "first", "second") == "second"
    monkeypatch.setenv("NEW_TASKS", "third")
    with pytest.raises(EnvError, match="none of: first, second"):
        read_env_choice("NEW_TASKS", "first", "second")
