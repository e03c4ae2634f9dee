"""`dynabench apply` at a server that runs: from a folder to a task, and on after a stop."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.core import mail

from core.accounts.models import confirm_address
from tasks.models import Invitation, Round, Task, TaskMember
from tests.support.benchmark_folders import count_rows, start_folder
from tests.support.factories import UserFactory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ann(db):
    user = UserFactory(email="ann@example.com")
    confirm_address(user)
    return user


@pytest.fixture
def desk(ann, live_server, tmp_path, capsys, monkeypatch, settings):
    return start_folder(ann, live_server.url, tmp_path, capsys, monkeypatch, settings)


def test_a_folder_becomes_a_task_once(desk, ann):
    assert desk.plan() == [
        ("create", "task.yaml"),
        ("create", "target.yaml"),
        ("create", "round.yaml"),
        ("create", "texts.jsonl"),
        ("create", "members.csv line 2"),
        ("create", "members.csv line 3"),
    ]
    assert not Task.objects.exists()

    desk.run("--yes")
    task, round = Task.objects.get(), Round.objects.get()
    assert (task.code, task.is_visible) == ("my-benchmark", False)
    assert task.config_text == desk.path("task.yaml").read_text()
    assert (round.state, round.max_collected) == ("draft", 500)
    assert [each.target.name for each in round.round_targets.all()] == ["first-model"]
    assert round.contexts.count() == 6
    assert {each.address: each.role for each in Invitation.objects.all()} == {
        "ben@example.com": "annotator",
        "cleo@example.com": "reviewer",
    }
    assert len(mail.outbox) == 2
    assert TaskMember.objects.get().user == ann

    rows = count_rows()
    assert desk.plan(code=0) == []
    desk.run("--yes")
    desk.run("--yes")
    assert (count_rows(), len(mail.outbox)) == (rows, 2)


@pytest.mark.parametrize("place", ["add_target", "import_contexts", "send_invitations"])
def test_a_killed_command_goes_on(desk, live_server, monkeypatch, place):
    """The command is killed while the server works; the server's work stays."""
    module = {
        "add_target": "tasks.api.target_models",
        "import_contexts": "tasks.api.contexts",
        "send_invitations": "tasks.api.invitations",
    }[place]
    original = getattr(sys.modules[module], place)
    commands = []

    def work_and_kill(**arguments):
        result = original(**arguments)
        # A dry run asks the same functions, and only the last one kills.
        if commands:
            os.kill(commands.pop().pid, signal.SIGKILL)
        return result

    monkeypatch.setattr(f"{module}.{place}", work_and_kill)
    command = [sys.executable, "-m", "dynabench.client", "apply", str(desk.folder), "--yes"]
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    process = subprocess.Popen(command, env=environment, cwd=desk.folder, stdout=subprocess.PIPE)
    commands.append(process)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert Task.objects.exists()
    desk.run("--yes")
    assert count_rows() == {
        "Task": 1, "Round": 1, "TargetModel": 1, "Context": 6, "ContextBatch": 1, "TaskMember": 1,
        "Invitation": 2,
    }  # fmt: skip
    assert len(mail.outbox) == 2
    assert desk.plan(code=0) == []
