"""Folders that describe a benchmark, and the command that applies them."""

import json
from pathlib import Path

from core.accounts.tokens import create_token
from dynabench.client.commands import main
from tasks.models import Context, ContextBatch, Invitation, Round, TargetModel, Task, TaskMember

TARGET = """
name: first-model
url: http://scripted.test
adapter: scripted
options:
  label: positive
"""
MEMBERS = "email,role\nben@example.com,annotator\ncleo@example.com,reviewer\n"


class Desk:
    """A person's folder and their command."""

    def __init__(self, folder, capsys, monkeypatch):
        self.folder, self.capsys, self.monkeypatch = folder, capsys, monkeypatch

    def write(self, **texts):
        """Write files: `write(target="…")` writes target.yaml."""
        endings = {"members": "csv", "texts": "jsonl"}
        for name, text in texts.items():
            self.path(f"{name}.{endings.get(name, 'yaml')}").write_text(text)

    def path(self, name) -> Path:
        return self.folder / name

    def edit(self, name, old, new):
        text = self.path(name).read_text()
        assert old in text
        self.path(name).write_text(text.replace(old, new))

    def run(self, *options, code=0):
        """Standard output and standard error."""
        self.capsys.readouterr()
        assert main(["apply", str(self.folder), *options]) == code, self.capsys.readouterr()
        return self.capsys.readouterr()

    def plan(self, *options, code=2):
        """The steps of a dry run as (kind, place), without those that change nothing."""
        steps = json.loads(self.run("--dry-run", "--json", *options, code=code).out)["steps"]
        return [(step["kind"], step["place"]) for step in steps if step["kind"] != "unchanged"]

    def problems(self, *options):
        """The problems of the files as (file, line)."""
        out = json.loads(self.run("--dry-run", "--json", *options, code=1).out)
        return [(each["file"], each["line"]) for each in out["problems"]]

    def act_as(self, user):
        _, key = create_token(user=user, name="laptop", scopes=["read", "own"], days=1)
        self.monkeypatch.setenv("DYNABENCH_API_KEY", key)


def start_folder(user, server, folder, capsys, monkeypatch, settings):
    """A new folder, as `dynabench init` writes it, with a model that answers by rule."""
    settings.NEW_TASKS = "everybody"
    settings.MEDIA_ROOT = folder / "media"
    monkeypatch.setenv("DYNABENCH_URL", server)
    monkeypatch.chdir(folder)
    assert main(["init", "my-benchmark"]) == 0
    desk = Desk(folder / "my-benchmark", capsys, monkeypatch)
    desk.write(target=TARGET, members=MEMBERS)
    desk.act_as(user)
    return desk


def count_rows():
    """How many rows there are of what a folder describes."""
    tables = (Task, Round, TargetModel, Context, ContextBatch, TaskMember, Invitation)
    return {table.__name__: table.objects.count() for table in tables}
