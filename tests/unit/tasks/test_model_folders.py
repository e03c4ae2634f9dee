"""Which folders lie below the models' folder."""

import os
from pathlib import Path

import pytest

from serving.folders import resolve_below


@pytest.mark.parametrize("source", ["a", "a/b", "a/../a", "./a", "missing", "link"])
def test_what_lies_below_is_resolved(tmp_path: Path, source: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    found = resolve_below(f"{tmp_path}/{source}", str(tmp_path))
    assert found == (tmp_path / source).resolve()


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    real = tmp_path / "real"
    (real / "a").mkdir(parents=True)
    (tmp_path / "home").symlink_to(real)
    for written in (tmp_path / "home", real):
        assert resolve_below(str(written / "a"), str(tmp_path / "home")) == real / "a"


@pytest.mark.parametrize(
    "source", ["", ".", "..", "../other", "a/../../other", "out", "out/x", "out/../a", "loop"]
)
def test_what_leads_elsewhere_is_not(tmp_path: Path, source: str) -> None:
    home = tmp_path / "home"
    (home / "a").mkdir(parents=True)
    (home / "out").symlink_to(tmp_path / "other")
    (home / "loop").symlink_to(home)
    assert resolve_below(f"{home}/{source}", str(home)) is None


@pytest.mark.parametrize("source", ["", "a", "../a", "~", "org/name", "package:x", "file:///etc"])
def test_what_is_no_full_path_is_not(source: str) -> None:
    assert resolve_below(source, os.getcwd()) is None


def test_the_disk_is_not_asked_about_what_is_written_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    real = os.path.realpath
    monkeypatch.setattr(os.path, "realpath", lambda path: asked.append(str(path)) or real(path))
    assert resolve_below("/etc", str(tmp_path)) is None
    assert asked == [str(tmp_path)]
