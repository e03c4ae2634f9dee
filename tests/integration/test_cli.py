"""The command `dynabench` of the wheel at a server: from a key to a place on the board."""

import json
import os
import stat
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from core.accounts.tokens import create_token
from tests.support.evaluations import set_version, without_deltas
from tests.support.factories import RoundFactory, TaskFactory, UserFactory

SCOPES = ["read", "submit"]


@pytest.fixture(scope="module")
def dynabench(wheel, tmp_path_factory) -> Path:
    """The command in an environment of its own, which finds torch and transformers in ours."""
    folder = tmp_path_factory.mktemp("with-torch")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    install = ["install", "--quiet", "--no-deps", "--disable-pip-version-check", str(wheel)]
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    subprocess.run([*pip, *install], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "ours.pth").write_text(sysconfig.get_path("purelib"))
    return python.with_name("dynabench")


@pytest.fixture
def desk(tmp_path) -> Path:
    """The folder that a person works in."""
    folder = tmp_path / "desk"
    folder.mkdir()
    return folder


class Shell:
    """A person's shell: a folder, a home and the address of a server."""

    def __init__(self, command: Path, folder: Path, server: str) -> None:
        self.command, self.folder = command, folder
        self.environment = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "DYNABENCH_URL": server,
        }

    def run(self, *arguments: str, code: int = 0, stdin: str = "") -> tuple[str, str]:
        """What a command says on standard output and on standard error."""
        done = subprocess.run(
            [self.command, *arguments], cwd=self.folder, env=self.environment, input=stdin,
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == code, (arguments, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return done.stdout, done.stderr

    def json(self, *arguments: str) -> dict:
        """The same command's data."""
        return json.loads(self.run(*arguments, "--json")[0])


@pytest.mark.django_db(transaction=True)
def test_from_a_key_to_a_place_on_the_board(dynabench, server, desk):
    task = TaskFactory(code="nli")
    without_deltas(task)
    RoundFactory(task=task)
    set_version(task, "control", size=12, may_leave=True)
    _, key = create_token(user=UserFactory(), name="laptop", scopes=SCOPES, days=9)
    shell = Shell(dynabench, desk, server)
    said, _ = shell.run("login", stdin=f"{key}\n")
    assert f"at {server} " in said
    assert "laptop" in said
    kept = desk / "config" / "dynabench" / "keys.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600

    said, _ = shell.run("init", "nli")
    assert "dynabench test nli-model/model --task nli" in said
    said, _ = shell.run("test", "nli-model/model", "--task", "nli", "--runner", "process")
    assert "5 examples" in said
    said, _ = shell.run("submit", "nli-model/model", "--task", "nli", "--name", "m", "--publish")
    assert said.startswith("m (nli): ")
    assert "control  accuracy" in said

    (model,) = shell.json("status")
    assert (model["name"], model["is_published"]) == ("m", True)
    results = shell.json("results", model["id"])
    assert results["scores"]["control"]["accuracy"]["n"] == 12
    assert shell.run("results", model["id"])[0].splitlines()[1].startswith("Dynascore ")
    (row,) = shell.json("leaderboard", "nli", "--weights", "accuracy=1")["rows"]
    assert (row["model"], row["rank"]) == ("m", "1")
    assert shell.json("logs", model["id"])[0]["of"] == "check"

    shell.run("data", "nli", "--inputs", "control")
    inputs = (desk / "nli-control.inputs.jsonl").read_text().splitlines()
    assert len(inputs) == 12
    answers = [{"id": json.loads(one)["id"], "output": {"label": "neutral"}} for one in inputs]
    (desk / "answers.jsonl").write_text("\n".join(map(json.dumps, answers)))
    said, _ = shell.run(
        "submit", "--predictions", "answers.jsonl", "--set", "control", "--task", "nli"
    )
    assert "dynabench publish " in said

    refused_here_and_there(shell)


def refused_here_and_there(shell: Shell) -> None:
    """What the server refuses, the check refuses in the same words."""
    about = shell.folder / "nli-model" / "model" / "config.json"
    config = json.loads(about.read_text())
    config["id2label"] = {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}
    about.write_text(json.dumps(config))
    _, here = shell.run("test", "nli-model/model", "--task", "nli", code=1)
    _, there = shell.run("submit", "nli-model/model", "--task", "nli", code=1)
    assert "LABEL_0, LABEL_1, LABEL_2" in here
    assert here.partition("Error: ")[2] == there.partition("Error: ")[2]


def test_what_is_missing_is_named_where_nothing_else_is_installed(python, tmp_path):
    shell = Shell(python.with_name("dynabench"), tmp_path, "http://127.0.0.1:9")
    (tmp_path / "model").mkdir()
    _, said = shell.run("test", "model", "--task", "nli", code=2)
    lacking = "pydantic, yaml, orjson, numpy, torch, transformers, tokenizers, safetensors"
    assert lacking in said
    assert said.endswith(" pip install 'dynabench-client[test]'\n")
    _, said = shell.run("status", code=3)
    assert said.startswith("Error: http://127.0.0.1:9 ")
