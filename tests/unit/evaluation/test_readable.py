"""Folders are copied for the sandbox's user when their modes or links keep it out."""

from collections.abc import Callable
from pathlib import Path

import pytest

from evaluation.isolation.sandbox.permissions import make_readable


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    (folder / "inner").mkdir(parents=True, mode=0o755)
    for name in ("config.json", "inner/weights"):
        (folder / name).write_text(name)
        (folder / name).chmod(0o644)
    return folder


def locked(folder: Path) -> None:
    (folder / "inner" / "weights").chmod(0o600)


def closed(folder: Path) -> None:
    (folder / "inner").chmod(0o700)


def closed_itself(folder: Path) -> None:
    folder.chmod(0o700)


def linked(folder: Path) -> None:
    (folder / "config.json").rename(folder.parent / "blob")
    (folder / "config.json").symlink_to("../blob")


@pytest.mark.parametrize("change", [locked, closed, closed_itself, linked])
def test_a_folder_that_keeps_others_out_is_copied(
    change: Callable[[Path], None], folder: Path, tmp_path: Path
) -> None:
    change(folder)
    with make_readable(folder, tmp_path, lambda call: call()) as copy:
        assert copy != folder
        assert (copy / "inner" / "weights").read_text() == "inner/weights"
        found = {path.relative_to(copy).as_posix(): path for path in copy.rglob("*")}
        assert found.keys() == {"config.json", "inner", "inner/weights"}
        for path in (copy, *found.values()):
            assert not path.is_symlink()
            assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644)
    assert not copy.exists()
    assert folder.exists()


def test_a_folder_for_everybody_is_taken_as_it_is(folder: Path, tmp_path: Path) -> None:
    with make_readable(folder, tmp_path, lambda call: pytest.fail("copied")) as same:
        assert same == folder
