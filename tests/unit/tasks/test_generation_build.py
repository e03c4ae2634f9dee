"""What prepares a language model: a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from serving.errors import MisconfiguredError
from serving.generation import build


def test_it_is_found_from_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server may be started elsewhere; paths count from there."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    asked: list[str] = []

    def run(command: list[str], *, cwd: Path, **_: object) -> subprocess.CompletedProcess[str]:
        asked.extend(command[3:])
        find = f"import importlib.util as u, sys; sys.exit(not u.find_spec({command[2]!r}))"
        ended = subprocess.Popen([sys.executable, "-c", find], cwd=cwd).wait()
        return subprocess.CompletedProcess(command, 1, stderr=f"found: {ended == 0}")

    monkeypatch.setattr(build.subprocess, "run", run)
    with pytest.raises(MisconfiguredError, match="found: True"):
        build.build_decoder("mine", Path("mine.gguf"), Path("made"), "int8")
    source, target, _ = asked
    assert Path(source) == tmp_path / "elsewhere" / "mine.gguf"
    assert Path(target).parent.parent == tmp_path / "elsewhere"
