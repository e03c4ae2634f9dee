"""The commands of the skill for coding agents, in its order, make the task that it describes."""

import re
import shlex
import shutil

import pytest

from core.accounts.models import confirm_address
from core.accounts.tokens import create_token
from dynabench.client.commands import main
from tasks.models import Task
from tests.support.benchmark_folders import TARGET
from tests.support.factories import UserFactory
from tests.support.live import ROOT

SKILL = ROOT / "skills" / "dynabench-benchmark"
SETTING_UP = (SKILL / "SKILL.md").read_text().partition("## Submit")[0]
COMMANDS = [shlex.split(line)[1:] for line in re.findall(r"(?m)^dynabench .*$", SETTING_UP)]


@pytest.mark.django_db(transaction=True)
def test_it_makes_a_task(live_server, tmp_path, monkeypatch, settings, capsys):
    settings.NEW_TASKS = "everybody"
    owner = UserFactory()
    confirm_address(owner)
    _, key = create_token(user=owner, name="agent", scopes=["read", "own"], days=1)
    monkeypatch.setenv("DYNABENCH_URL", live_server.url)
    monkeypatch.setenv("DYNABENCH_API_KEY", key)
    monkeypatch.chdir(tmp_path)
    start, check, create, look, _ = COMMANDS
    assert main(start) == 0

    folder = tmp_path / "my-task"
    shutil.copy(SKILL / "assets" / "task.yaml", folder)
    text = re.search(r"```json\n(.*?)```", SETTING_UP, re.DOTALL).group(1)
    (folder / "texts.jsonl").write_text(text)
    (folder / "target.yaml").write_text(TARGET.replace("positive", "follows"))
    assert main(check) == 2, capsys.readouterr()  # something to create
    assert not Task.objects.exists()
    assert main(create) == 0, capsys.readouterr()
    assert main(look) == 0
    round = Task.objects.get(code="my-task").rounds.get()
    assert (round.state, round.contexts.count()) == ("draft", 1)
    assert main(check) == 0  # nothing left to do
