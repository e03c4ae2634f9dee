"""`bench.check` with a program that prints what a test wants, in a repository of the test's own."""

import json
import subprocess
from pathlib import Path

import pytest

from bench import check

PROGRAM = """
import json, os
from pathlib import Path
runs = Path(os.environ["RUNS"])
runs.open("a").write(f"{Path.cwd().name}\\n")
said = %s
number = runs.read_text().split().count(Path.cwd().name) - 1
vote = said[min(number, len(said) - 1)]
origin = {"better": {"vote": "lower"}, "machine": {"cpu": "any"}, "versions": {"python": "3"}}
print(json.dumps({"ratios": {"vote": vote}, **origin}))
"""


class Repository:
    """A checkout with one program, and what `bench.check` finds in it."""

    def __init__(self, root: Path, runs: Path) -> None:
        self.root, self._runs = root, runs
        self.git("init", "-q")
        (root / "bench").mkdir()
        (root / "tasks").mkdir()
        (root / ".gitignore").write_text("/var/\n")

    def git(self, *arguments: str) -> str:
        name = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        command = ["git", "-C", str(self.root), *name, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def write(self, *said: float | str) -> None:
        """Let the program print these figures, run after run; the last one stays."""
        (self.root / "bench" / "fake.py").write_text(PROGRAM % json.dumps(said))
        (self.root / "tasks" / "models.py").write_text(f"said = {said}\n")

    def commit(self) -> str:
        self.git("add", "-A")
        self.git("commit", "-qm", "more")
        return self.git("rev-parse", "HEAD")

    @property
    def runs(self) -> list[str]:
        """In which work tree the program ran, run after run."""
        return self._runs.read_text().split() if self._runs.exists() else []


@pytest.fixture
def repository(tmp_path, monkeypatch):
    (root := tmp_path / "here").mkdir()
    monkeypatch.setattr(check, "ROOT", root)
    monkeypatch.setattr(check, "RATIOS", root / "bench" / "ratios.json")
    monkeypatch.setenv("RUNS", str(tmp_path / "runs"))
    # A program written again within a second, as long as before, looks unchanged to Python.
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    return Repository(root, tmp_path / "runs")


def checked(monkeypatch, *arguments: str) -> object:
    """How the check ends: None where nothing is lost."""
    monkeypatch.setattr("sys.argv", ["check", "--programs", "fake", *arguments])
    try:
        check.main()
    except SystemExit as ended:
        return ended.code
    return None


def test_a_loss_fails_after_it_was_measured_again(repository, monkeypatch, capsys):
    repository.write(10)
    kept = repository.commit()
    repository.write(13)
    assert checked(monkeypatch, "--against", kept)
    assert "LOST" in capsys.readouterr().out
    assert repository.runs == [
        *("tree", "here", "here", "tree", "tree", "here"),
        *("tree", "here", "here", "tree"),
    ]
    assert len(repository.git("worktree", "list").splitlines()) == 1


def test_what_two_slow_runs_lost_is_found_again(repository, monkeypatch):
    repository.write(10)
    kept = repository.commit()
    repository.write(13, 13, 10)
    assert checked(monkeypatch, "--against", kept) is None
    assert len(repository.runs) == 10


def test_the_commit_of_accepted_figures_is_compared(repository, monkeypatch, capsys):
    repository.write(10)
    kept = repository.commit()
    assert checked(monkeypatch, "--accept") is None
    known = json.loads(check.RATIOS.read_text())["fake"]
    assert (known["commit"], known["ratios"]) == (kept, {"vote": 10})
    assert known.keys() >= {"better", "machine", "versions"}

    repository.write(11)
    assert checked(monkeypatch, "--accept"), "the new figures have no commit"
    repository.commit()
    capsys.readouterr()
    assert checked(monkeypatch) is None
    assert "91%" in capsys.readouterr().out


@pytest.mark.parametrize("why", ["no commit", "does not run"])
def test_where_the_kept_commit_cannot_be_measured_nothing_is_decided(
    why, repository, monkeypatch, capsys
):
    repository.write(10)
    if why == "does not run":
        (repository.root / "bench" / "fake.py").write_text("import gone\n")
    kept = repository.commit() if why == "does not run" else "0" * 40
    check.RATIOS.write_text(json.dumps({"fake": {"commit": kept, "ratios": {"vote": 10}}}))
    repository.write(30)
    repository.commit()
    assert checked(monkeypatch) is None
    assert "NOTE" in capsys.readouterr().out


def test_a_program_that_fails_here_fails_the_check(repository, monkeypatch):
    repository.write(10)
    kept = repository.commit()
    repository.write("no number")
    (repository.root / "bench" / "fake.py").write_text("print('{}')\n")
    assert checked(monkeypatch, "--against", kept)


def test_nothing_is_measured_where_no_file_of_the_product_differs(repository, monkeypatch):
    repository.write(10)
    kept = repository.commit()
    (repository.root / "README.md").write_text("Read me.")
    assert checked(monkeypatch, "--against", kept, "--if-changed") is None
    assert not repository.runs
    (repository.root / "tasks" / "new.py").write_text("")
    assert checked(monkeypatch, "--against", kept, "--if-changed") is None
    assert repository.runs


def test_without_accepted_figures_nothing_is_measured(repository, monkeypatch):
    repository.write(10)
    repository.commit()
    assert checked(monkeypatch) is None
    assert not repository.runs
